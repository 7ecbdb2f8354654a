# make wheel image
# docker run --rm --read-only --tmpfs /tmp --publish 8080:8080 --volume "$PWD/model.pt2:/models/model.pt2:ro" torchcommodity
# docker stop --time 30 CONTAINER   leaves time to finish accepted requests

ARG PYTHON=3.12
FROM python:${PYTHON}-slim
# another index with torch: https://pypi.org/simple for CUDA, or a mirror
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# USER: PyTorch names its cache after the user, who has no entry in /etc/passwd if an orchestrator chooses the ID
ENV HOME=/tmp USER=serve PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN --mount=type=bind,source=constraints.txt,target=/build/constraints.txt \
    pip install --constraint /build/constraints.txt --index-url "$TORCH_INDEX" torch
# Bound, not copied: the wheels take no space in the image. Podman's cache does not look at what is bound, but at REVISION.
ARG VERSION
ARG REVISION
RUN --mount=type=bind,target=/build \
    pip install --constraint /build/constraints.txt --find-links /build/dist "$(ls /build/dist/torchcommodity-*_"$(uname -m)".whl)[serve,cloud]"
# Vertex AI sets it to the gs:// folder of the model
ENV AIP_STORAGE_URI=/models
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=90s CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('AIP_HTTP_PORT', '8080') + os.environ.get('AIP_HEALTH_ROUTE', '/health'), timeout=4)"]
# exec form, so that the server receives SIGTERM
ENTRYPOINT ["torchcommodity", "serve", "--host", "0.0.0.0"]
LABEL org.opencontainers.image.title="torchcommodity" \
    org.opencontainers.image.description="Forecasts of commodity prices over HTTP, from one exported model" \
    org.opencontainers.image.source="https://github.com/torchcommodity/torchcommodity" \
    org.opencontainers.image.licenses="BSD-3-Clause" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION"

# docker build --tag torchcommodity .
# docker run --rm --publish 8080:8080 --volume "$PWD/model.pt2:/models/model.pt2:ro" torchcommodity
# docker stop --time 30 CONTAINER   leaves time to finish accepted requests

FROM python:3.12-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY constraints.txt ./
RUN pip install --constraint constraints.txt --index-url https://download.pytorch.org/whl/cpu torch \
    && pip install "setuptools>=77" wheel ninja
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY torchcommodity torchcommodity
RUN pip wheel --no-build-isolation --no-deps --wheel-dir /wheels . \
    && pip install --constraint constraints.txt "$(ls /wheels/torchcommodity-*.whl)[serve,cloud]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin serve
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Vertex AI sets it to the gs:// folder of the model
ENV AIP_STORAGE_URI=/models
USER 10001
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=90s CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('AIP_HTTP_PORT', '8080') + os.environ.get('AIP_HEALTH_ROUTE', '/health'), timeout=4)"]
# exec form, so that the server receives SIGTERM
ENTRYPOINT ["torchcommodity", "serve", "--host", "0.0.0.0"]

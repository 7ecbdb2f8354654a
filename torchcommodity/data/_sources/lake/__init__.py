"""Tables that are not local files: objects on S3 and Google Cloud Storage, files of web servers."""

"""Tables that are not local files: objects on S3 and Google Cloud Storage, MotherDuck, BigQuery."""

"""An object store that speaks S3, and a database that speaks DynamoDB, on the loopback."""

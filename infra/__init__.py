"""What brings the job to AWS: `infra.package` makes the files to upload; `infra/jobs` has the scripts that Glue and EMR start."""

mock_provider "aws" {
  mock_resource "aws_s3_bucket" {
    defaults = {
      id     = "trawl-indexes"
      arn    = "arn:aws:s3:::trawl-indexes"
      region = "eu-central-1"
    }
  }
}

variables {
  name = "trawl-indexes"
}

run "is_private_versioned_and_encrypted" {
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this.block_public_acls,
      aws_s3_bucket_public_access_block.this.block_public_policy,
      aws_s3_bucket_public_access_block.this.ignore_public_acls,
      aws_s3_bucket_public_access_block.this.restrict_public_buckets,
    ])
    error_message = "The bucket could be made public."
  }
  assert {
    condition     = aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled"
    error_message = "What is deleted cannot be brought back."
  }
  assert {
    condition     = one(aws_s3_bucket_server_side_encryption_configuration.this.rule).apply_server_side_encryption_by_default[0].sse_algorithm == "AES256"
    error_message = "Objects are not encrypted."
  }
  assert {
    condition     = jsondecode(aws_s3_bucket_policy.this.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false"
    error_message = "Connections without TLS are not refused."
  }
  assert {
    condition     = output.url == "s3://trawl-indexes?region=eu-central-1"
    error_message = "Trawl does not understand the URL."
  }
}

run "nothing_live_expires" {
  assert {
    condition     = alltrue([for r in aws_s3_bucket_lifecycle_configuration.this.rule : length(r.expiration) == 0 && length(r.transition) == 0])
    error_message = "Live objects would expire."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].noncurrent_version_expiration[0].noncurrent_days == 7
    error_message = "What was deleted stays for ever."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].abort_incomplete_multipart_upload[0].days_after_initiation == 2
    error_message = "Uploads that did not end stay for ever."
  }
  assert {
    condition     = !aws_s3_bucket.this.force_destroy
    error_message = "A full bucket could be destroyed."
  }
}

run "a_key_of_ones_own" {
  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1"
  }
  assert {
    condition     = one(aws_s3_bucket_server_side_encryption_configuration.this.rule).apply_server_side_encryption_by_default[0].kms_master_key_id == var.kms_key_arn
    error_message = "The key is not used."
  }
}

run "names_are_checked" {
  command = plan
  variables {
    name = "Trawl_Indexes"
  }
  expect_failures = [var.name]
}

run "days_are_checked" {
  command = plan
  variables {
    noncurrent_days        = 0
    incomplete_upload_days = 1.5
    kms_key_arn            = "alias/mine"
  }
  expect_failures = [var.noncurrent_days, var.incomplete_upload_days, var.kms_key_arn]
}

variable "name" {
  description = "Name of the bucket"
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.name))
    error_message = "A bucket's name has 3 to 63 small letters, digits, dots and hyphens."
  }
}

variable "kms_key_arn" {
  description = "KMS key that encrypts the objects; null: S3's own key"
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "The key is an ARN of KMS, or null."
  }
}

variable "noncurrent_days" {
  description = "Days for which deleted objects can be restored"
  type        = number
  default     = 7

  validation {
    condition     = var.noncurrent_days >= 1 && floor(var.noncurrent_days) == var.noncurrent_days
    error_message = "A whole number of days, 1 or more."
  }
}

variable "incomplete_upload_days" {
  description = "Days after which an unfinished upload is deleted"
  type        = number
  default     = 2

  validation {
    condition     = var.incomplete_upload_days >= 1 && floor(var.incomplete_upload_days) == var.incomplete_upload_days
    error_message = "A whole number of days, 1 or more."
  }
}

variable "tags" {
  description = "Tags of the bucket"
  type        = map(string)
  default     = {}
}

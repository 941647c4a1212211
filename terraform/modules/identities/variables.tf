variable "name" {
  description = "Prefix of the roles' names"
  type        = string
  default     = "trawl"

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@_-]{1,50}$", var.name))
    error_message = "A role's name has letters, digits and +=,.@_-, at most 50 here."
  }
}

variable "bucket_arn" {
  description = "ARN of the bucket"
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:s3:::[a-z0-9.-]+$", var.bucket_arn))
    error_message = "The bucket is given by its ARN, arn:aws:s3:::NAME."
  }
}

variable "prefix" {
  description = "Prefix of all object keys, as in s3://BUCKET/PREFIX; empty or with a slash at its end"
  type        = string
  default     = ""

  validation {
    condition     = var.prefix == "" || can(regex("^[^/*?][^*?]*/$", var.prefix))
    error_message = "The prefix is empty, or ends with a slash and has no wildcards."
  }
}

variable "kms_key_arn" {
  description = "KMS key that encrypts the bucket; null: none"
  type        = string
  default     = null
}

variable "oidc_provider_arn" {
  description = "ARN of the cluster's OIDC provider in IAM"
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:iam::[0-9]{12}:oidc-provider/", var.oidc_provider_arn))
    error_message = "The provider is given by its ARN, arn:aws:iam::ACCOUNT:oidc-provider/ISSUER."
  }
}

variable "oidc_issuer" {
  description = "URL of the cluster's OIDC issuer"
  type        = string

  validation {
    condition     = can(regex("^https://[^/]+", var.oidc_issuer))
    error_message = "The issuer is a URL that begins with https://."
  }
}

variable "namespace" {
  description = "Namespace of the service accounts"
  type        = string
  default     = "trawl"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "A namespace has small letters, digits and hyphens."
  }
}

variable "service_accounts" {
  description = "Service account of each role: indexer, searcher, and gc for people who run trawl gc or trawl restore by hand"
  type        = map(string)
  default     = { indexer = "trawl-indexer", searcher = "trawl-searcher", gc = "trawl-gc" }

  validation {
    condition     = length(setsubtract(keys(var.service_accounts), ["indexer", "searcher", "gc"])) == 0
    error_message = "The roles are indexer, searcher and gc."
  }
}

variable "tags" {
  description = "Tags of the roles"
  type        = map(string)
  default     = {}
}

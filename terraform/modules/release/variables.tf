variable "name" {
  description = "Name of the release"
  type        = string
  default     = "trawl"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$", var.name))
    error_message = "A release's name has at most 53 small letters, digits and hyphens."
  }
}

variable "namespace" {
  description = "Namespace of the release"
  type        = string
  default     = "trawl"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "A namespace has small letters, digits and hyphens."
  }
}

variable "create_namespace" {
  description = "Create the namespace, and remove it on destroy"
  type        = bool
  default     = true
}

variable "namespace_labels" {
  description = "Labels of the namespace"
  type        = map(string)
  default     = { "pod-security.kubernetes.io/enforce" = "restricted" }
}

variable "chart" {
  description = "Folder, file or name of the chart"
  type        = string
}

variable "chart_repository" {
  description = "Repository of the chart; null for a folder or a file"
  type        = string
  default     = null
}

variable "chart_version" {
  description = "Version of the chart; null for a folder or a file"
  type        = string
  default     = null
}

variable "bucket_url" {
  description = "Where the indexes are kept: s3://BUCKET[/PREFIX][?endpoint=URL&region=REGION]"
  type        = string
  default     = ""

  validation {
    condition     = var.bucket_url == "" || startswith(var.bucket_url, "s3://")
    error_message = "The bucket is given as s3://BUCKET."
  }
}

variable "etcd_endpoints" {
  description = "Endpoints of etcd"
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for e in var.etcd_endpoints : can(regex("^https?://[^/]+:[0-9]+$", e))])
    error_message = "An endpoint is http://HOST:PORT or https://HOST:PORT."
  }
}

variable "nats_url" {
  description = "URL of NATS"
  type        = string
  default     = ""

  validation {
    condition     = var.nats_url == "" || can(regex("^(nats|tls)://[^@]+$", var.nats_url))
    error_message = "NATS is nats://HOST:PORT or tls://HOST:PORT, without credentials: those are in a secret."
  }
}

variable "service_account_annotations" {
  description = "Annotations of the service accounts of indexer and searcher, which give them their cloud identities"
  type        = map(map(string))
  default     = {}
}

variable "evaluation" {
  description = "Run small servers instead of those above, only to try Trawl out"
  type        = bool
  default     = false
}

variable "values" {
  description = "More values of the chart, as YAML; later ones override earlier ones"
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for v in var.values : can(yamldecode(v))])
    error_message = "The values are YAML."
  }
}

variable "timeout_seconds" {
  description = "Longest time for the release to be ready"
  type        = number
  default     = 600

  validation {
    condition     = var.timeout_seconds >= 30
    error_message = "Thirty seconds or more."
  }
}

variable "atomic" {
  description = "Roll back a release that does not become ready"
  type        = bool
  default     = true
}

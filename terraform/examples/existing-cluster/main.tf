# Trawl in an existing cluster, with existing servers, or with small
# ones to try it out.

terraform {
  required_version = ">= 1.8"

  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = ">= 3.0"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.30"
    }
  }
}

variable "kubeconfig" {
  description = "Kubeconfig file of the cluster"
  type        = string
  default     = "~/.kube/config"
}

variable "namespace" {
  description = "Namespace of Trawl"
  type        = string
  default     = "trawl"
}

variable "values" {
  description = "Files with values of the chart"
  type        = list(string)
  default     = []
}

variable "evaluation" {
  description = "Run small servers for Trawl"
  type        = bool
  default     = true
}

variable "bucket_url" {
  description = "Bucket, unless evaluation"
  type        = string
  default     = ""
}

variable "etcd_endpoints" {
  description = "Endpoints of etcd, unless evaluation"
  type        = list(string)
  default     = []
}

variable "nats_url" {
  description = "URL of NATS, unless evaluation"
  type        = string
  default     = ""
}

provider "kubernetes" {
  config_path = pathexpand(var.kubeconfig)
}

provider "helm" {
  kubernetes = {
    config_path = pathexpand(var.kubeconfig)
  }
}

module "release" {
  source = "../../modules/release"

  chart          = "${path.module}/../../../charts/trawl"
  namespace      = var.namespace
  evaluation     = var.evaluation
  bucket_url     = var.bucket_url
  etcd_endpoints = var.etcd_endpoints
  nats_url       = var.nats_url
  values         = [for f in var.values : file(f)]
}

output "namespace" {
  description = "Namespace of Trawl"
  value       = module.release.namespace
}

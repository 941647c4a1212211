# Trawl on an existing EKS cluster: a bucket, an identity for each role that
# uses it, and the release. etcd and NATS exist, too.

terraform {
  required_version = ">= 1.8"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
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

variable "region" {
  description = "Region of the cluster and the bucket"
  type        = string
}

variable "cluster_name" {
  description = "Name of the EKS cluster; IAM must have its OIDC provider"
  type        = string
}

variable "bucket_name" {
  description = "Name of the new bucket"
  type        = string
}

variable "etcd_endpoints" {
  description = "Endpoints of etcd"
  type        = list(string)
}

variable "nats_url" {
  description = "URL of NATS"
  type        = string
}

provider "aws" {
  region = var.region
}

data "aws_eks_cluster" "this" {
  name = var.cluster_name
}

data "aws_iam_openid_connect_provider" "this" {
  url = local.issuer
}

locals {
  issuer = data.aws_eks_cluster.this.identity[0].oidc[0].issuer
  access = {
    host                   = data.aws_eks_cluster.this.endpoint
    cluster_ca_certificate = base64decode(data.aws_eks_cluster.this.certificate_authority[0].data)
    exec = {
      api_version = "client.authentication.k8s.io/v1"
      command     = "aws"
      args        = ["eks", "get-token", "--region", var.region, "--cluster-name", var.cluster_name]
    }
  }
}

provider "helm" {
  kubernetes = local.access
}

provider "kubernetes" {
  host                   = local.access.host
  cluster_ca_certificate = local.access.cluster_ca_certificate

  exec {
    api_version = local.access.exec.api_version
    command     = local.access.exec.command
    args        = local.access.exec.args
  }
}

module "bucket" {
  source = "../../modules/bucket"

  name = var.bucket_name
}

module "identities" {
  source = "../../modules/identities"

  bucket_arn        = module.bucket.arn
  oidc_issuer       = local.issuer
  oidc_provider_arn = data.aws_iam_openid_connect_provider.this.arn
}

module "release" {
  source = "../../modules/release"

  chart                       = "${path.module}/../../../charts/trawl"
  bucket_url                  = module.bucket.url
  etcd_endpoints              = var.etcd_endpoints
  nats_url                    = var.nats_url
  service_account_annotations = module.identities.annotations
}

output "bucket_url" {
  description = "Bucket of the indexes"
  value       = module.bucket.url
}

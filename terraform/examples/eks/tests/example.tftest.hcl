mock_provider "aws" {
  mock_resource "aws_s3_bucket" {
    defaults = {
      id     = "trawl-indexes"
      arn    = "arn:aws:s3:::trawl-indexes"
      region = "eu-central-1"
    }
  }
  mock_data "aws_eks_cluster" {
    defaults = {
      endpoint              = "https://cluster.example.org"
      certificate_authority = [{ data = "Y2VydGlmaWNhdGU=" }]
      identity              = [{ oidc = [{ issuer = "https://oidc.example.org/id/1" }] }]
    }
  }
  mock_data "aws_iam_openid_connect_provider" {
    defaults = {
      arn = "arn:aws:iam::111122223333:oidc-provider/oidc.example.org/id/1"
    }
  }
}
mock_provider "helm" {}
mock_provider "kubernetes" {}

run "is_whole" {
  variables {
    region         = "eu-central-1"
    cluster_name   = "prod"
    bucket_name    = "trawl-indexes"
    etcd_endpoints = ["http://etcd:2379"]
    nats_url       = "nats://nats:4222"
  }
  assert {
    condition     = output.bucket_url == "s3://trawl-indexes?region=eu-central-1"
    error_message = "The bucket is another one."
  }
}

# Trawl in a cluster: a namespace and a release of the chart.

resource "kubernetes_namespace_v1" "this" {
  count = var.create_namespace ? 1 : 0

  metadata {
    name   = var.namespace
    labels = var.namespace_labels
  }
}

locals {
  # Addresses of the servers, and identities of the service accounts; var.values override them.
  places = {
    bucket = { url = var.bucket_url }
    etcd   = { endpoints = var.etcd_endpoints }
    nats   = { url = var.nats_url }
    indexer = {
      serviceAccount = { annotations = lookup(var.service_account_annotations, "indexer", {}) }
    }
    searcher = {
      serviceAccount = { annotations = lookup(var.service_account_annotations, "searcher", {}) }
    }
  }
}

resource "helm_release" "this" {
  name       = var.name
  namespace  = var.create_namespace ? kubernetes_namespace_v1.this[0].metadata[0].name : var.namespace
  repository = var.chart_repository
  chart      = var.chart
  version    = var.chart_version
  timeout    = var.timeout_seconds
  wait       = true
  atomic     = var.atomic
  values     = concat(var.evaluation ? [yamlencode({ evaluation = { enabled = true } })] : [yamlencode(local.places)], var.values)

  lifecycle {
    precondition {
      condition     = var.evaluation || (var.bucket_url != "" && length(var.etcd_endpoints) > 0 && var.nats_url != "")
      error_message = "Trawl needs bucket_url, etcd_endpoints and nats_url, or evaluation."
    }
  }
}

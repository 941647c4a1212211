mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  chart          = "../../../charts/trawl"
  bucket_url     = "s3://trawl-indexes?region=eu-central-1"
  etcd_endpoints = ["http://etcd:2379"]
  nats_url       = "nats://nats:4222"
}

run "values_lead_to_the_servers" {
  variables {
    service_account_annotations = { searcher = { "eks.amazonaws.com/role-arn" = "arn:aws:iam::111122223333:role/s" } }
    values                      = ["searcher: {replicas: 5}"]
  }
  assert {
    condition     = yamldecode(helm_release.this.values[0]).etcd.endpoints == ["http://etcd:2379"]
    error_message = "etcd is not passed on."
  }
  assert {
    condition     = yamldecode(helm_release.this.values[0]).searcher.serviceAccount.annotations["eks.amazonaws.com/role-arn"] == "arn:aws:iam::111122223333:role/s"
    error_message = "The searcher has no identity."
  }
  assert {
    condition     = helm_release.this.values[1] == "searcher: {replicas: 5}"
    error_message = "Values of one's own do not stand above the others."
  }
  assert {
    condition     = helm_release.this.namespace == "trawl" && kubernetes_namespace_v1.this[0].metadata[0].labels["pod-security.kubernetes.io/enforce"] == "restricted"
    error_message = "The namespace is another one, or lets pods do anything."
  }
}

run "a_namespace_that_is_there" {
  variables {
    create_namespace = false
    namespace        = "search"
  }
  assert {
    condition     = length(kubernetes_namespace_v1.this) == 0 && helm_release.this.namespace == "search"
    error_message = "The namespace is made although it is there."
  }
}

run "evaluation_needs_nothing" {
  variables {
    evaluation     = true
    bucket_url     = ""
    etcd_endpoints = []
    nats_url       = ""
  }
  assert {
    condition     = yamldecode(helm_release.this.values[0]).evaluation.enabled && length(helm_release.this.values) == 1
    error_message = "The servers for evaluation are not wanted."
  }
}

run "servers_are_needed" {
  command = plan
  variables {
    bucket_url = ""
  }
  expect_failures = [helm_release.this]
}

run "inputs_are_checked" {
  command = plan
  variables {
    name            = "Trawl"
    namespace       = "-"
    bucket_url      = "gs://x"
    etcd_endpoints  = ["etcd"]
    nats_url        = "nats://user:secret@nats:4222"
    values          = ["a: [b"]
    timeout_seconds = 1
  }
  expect_failures = [var.name, var.namespace, var.bucket_url, var.etcd_endpoints, var.nats_url, var.values, var.timeout_seconds]
}

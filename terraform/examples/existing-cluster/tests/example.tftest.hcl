mock_provider "helm" {}
mock_provider "kubernetes" {}

run "is_whole" {
  assert {
    condition     = output.namespace == "trawl"
    error_message = "The release is elsewhere."
  }
}

output "name" {
  description = "Name of the release"
  value       = helm_release.this.name
}

output "namespace" {
  description = "Namespace of the release"
  value       = helm_release.this.namespace
}

output "status" {
  description = "Status of the release"
  value       = helm_release.this.status
}

// Package k8s proves the Helm chart on a real Kubernetes of three nodes, which
// the package kube makes in containers. README.md says how.
package k8s

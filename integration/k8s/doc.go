// Package k8s tests the Helm chart on a real Kubernetes of three nodes, which
// the package kube runs in containers. README.md explains how.
package k8s

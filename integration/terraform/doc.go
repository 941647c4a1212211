// Package terraform tests the modules and examples in the folder terraform with
// OpenTofu, the helm and kubernetes providers, and a fake AWS provider that only
// serves schemas.
//
//	go test -v ./integration/terraform                                          # only if all is built
//	TRAWL_TEST_TERRAFORM=build go test -v -timeout 60m ./integration/terraform  # builds what is missing
//
// With TRAWL_TEST_KUBECONFIG, and files of values in TRAWL_TEST_VALUES, the example
// for an existing cluster is applied there and destroyed again.
package terraform

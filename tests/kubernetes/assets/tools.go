//go:build tools

// Package assets names the programs that get-assets builds, so that go.mod and go.sum cover them.
package assets

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)

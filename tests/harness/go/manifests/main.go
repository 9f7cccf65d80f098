// manifests FILE: every document is read by Kubernetes' own types, which have to know each of its fields.
package main

import (
	"bytes"
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"ConfigMap":      func() any { return &core.ConfigMap{} },
	"DaemonSet":      func() any { return &apps.DaemonSet{} },
	"Namespace":      func() any { return &core.Namespace{} },
	"PriorityClass":  func() any { return &scheduling.PriorityClass{} },
	"ServiceAccount": func() any { return &core.ServiceAccount{} },
}

func check(document []byte) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return err
	}
	if head.Kind == "" {
		return nil // comments alone
	}
	made, known := kinds[head.Kind]
	if !known {
		return fmt.Errorf("%s: no such kind is expected", head.Kind)
	}
	if err := yaml.UnmarshalStrict(document, made()); err != nil {
		return fmt.Errorf("%s: %w", head.Kind, err)
	}
	return nil
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		if err := check(document); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

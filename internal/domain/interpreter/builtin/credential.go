package builtin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/interpreter"
)

func serviceAccount() interpreter.Rules {
	return interpreter.Rules{Retain: retainServiceAccount}
}

func secret() interpreter.Rules {
	return interpreter.Rules{Retain: retainServiceAccountToken}
}

// retainServiceAccount keeps the secrets that were added to the ServiceAccount in the member.
func retainServiceAccount(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := copyOnWrite{object: desired}
	for _, field := range []string{"secrets", "imagePullSecrets"} {
		desiredEntries, err := nested[[]any](desired.Object, field)
		if err != nil {
			return nil, err
		}
		memberEntries, err := nested[[]any](observed.Object, field)
		if err != nil {
			return nil, fmt.Errorf("reading the member object: %w", err)
		}
		added := withoutKnownNames(memberEntries, desiredEntries)
		if len(added) == 0 {
			continue
		}
		if err := retained.set(append(desiredEntries[:len(desiredEntries):len(desiredEntries)], added...), field); err != nil {
			return nil, err
		}
	}
	return retained.object, nil
}

// withoutKnownNames returns the entries whose names do not occur in known.
func withoutKnownNames(entries, known []any) []any {
	names := make(map[string]bool, len(known))
	for _, entry := range known {
		names[entryText(entry, "name")] = true
	}
	var others []any
	for _, entry := range entries {
		if !names[entryText(entry, "name")] {
			others = append(others, entry)
		}
	}
	return others
}

// retainServiceAccountToken keeps the token that the member wrote to a Secret of type
// kubernetes.io/service-account-token.
func retainServiceAccountToken(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, err := text(desired.Object, "type")
	if err != nil || kind != string(corev1.SecretTypeServiceAccountToken) {
		return desired, err
	}
	data, err := nested[map[string]any](observed.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	if data == nil {
		return desired, nil
	}
	return withField(desired, data, "data")
}

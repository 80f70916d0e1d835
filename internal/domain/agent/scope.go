package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ScopedGroup is the group of tokens with a Scope. The group is part of each request, so a request
// shows that its token was scoped even after the token was deleted.
const ScopedGroup = "system:bootstrappers:karmada:scoped-cluster-token"

// Scope limits which clusters can be registered with a token, and what placements can select them by.
type Scope struct {
	// ClusterName is the only name that the cluster may have. Empty means any free name.
	ClusterName string `json:"clusterName,omitempty"`
	// Labels, Provider, Region and Zones are those of the Cluster. If at least one of them is set, the
	// Cluster has exactly these values, and the others are empty, because a placement can select
	// clusters by any of them. If none is set, the agent chooses all of them.
	Labels   map[string]string `json:"labels,omitempty"`
	Provider string            `json:"provider,omitempty"`
	Region   string            `json:"region,omitempty"`
	Zones    []string          `json:"zones,omitempty"`
}

// IsEmpty reports whether the scope limits nothing.
func (s Scope) IsEmpty() bool { return s.ClusterName == "" && !s.fixesLocation() }

func (s Scope) fixesLocation() bool {
	return len(s.Labels) > 0 || s.Provider != "" || s.Region != "" || len(s.Zones) > 0
}

// Validate returns an error if no Cluster can be in the scope.
func (s Scope) Validate() error {
	var errs []error
	if s.ClusterName != "" && !IsValidName(s.ClusterName) {
		errs = append(errs, fmt.Errorf("cluster name %q: no cluster with an agent can have this name; choose another one", s.ClusterName))
	}
	for _, key := range sortedKeys(s.Labels) {
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(s.Labels[key])...) {
			errs = append(errs, fmt.Errorf("label %s=%s: %s", key, s.Labels[key], problem))
		}
	}
	for _, value := range append([]string{s.Provider, s.Region}, s.Zones...) {
		for _, problem := range validation.IsValidLabelValue(value) {
			errs = append(errs, fmt.Errorf("location %q: %s", value, problem))
		}
	}
	return errors.Join(errs...)
}

// Encode returns the text of the scope for RegistrationScopeAnnotation. It is empty for an empty
// scope.
func (s Scope) Encode() string {
	if s.IsEmpty() {
		return ""
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return "" // strings can always be encoded
	}
	return string(encoded)
}

// ParseScope parses the text of a scope. An unknown field is an error, because a later release may
// limit the agent with it.
func ParseScope(text string) (Scope, error) {
	if text == "" {
		return Scope{}, nil
	}
	scope := Scope{}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&scope); err != nil {
		return Scope{}, fmt.Errorf("annotation %s: %w", clusterv1alpha1.RegistrationScopeAnnotation, err)
	}
	return scope, nil
}

// Apply sets the fields of a new Cluster that the scope determines and the agent left empty, so that the
// agent need not know its labels and location.
func (s Scope) Apply(created *clusterv1alpha1.Cluster) {
	if len(created.Labels) == 0 && len(s.Labels) > 0 {
		created.Labels = maps.Clone(s.Labels)
	}
	spec := &created.Spec
	if spec.Provider == "" {
		spec.Provider = s.Provider
	}
	if spec.Region == "" {
		spec.Region = s.Region
	}
	if spec.Zone == "" && len(spec.Zones) == 0 {
		spec.Zones = slices.Clone(s.Zones)
	}
}

// validate returns an error for each field of a new Cluster that is not in the scope. It need not check the
// name, which the agent's certificate contains.
func (s Scope) validate(created *clusterv1alpha1.Cluster) field.ErrorList {
	if !s.fixesLocation() {
		return nil
	}
	var errs field.ErrorList
	forbid := func(path *field.Path, want string) {
		if want == "" {
			want = "none"
		}
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("the token with which cluster %q was registered allows only: %s; leave the field empty, or register with another token", created.Name, want)))
	}
	spec, path := &created.Spec, field.NewPath("spec")
	if !maps.Equal(created.Labels, s.Labels) {
		forbid(field.NewPath("metadata", "labels"), formatLabels(s.Labels))
	}
	if spec.Provider != s.Provider {
		forbid(path.Child("provider"), s.Provider)
	}
	if spec.Region != s.Region {
		forbid(path.Child("region"), s.Region)
	}
	if spec.Zone != "" || !slices.Equal(spec.Zones, s.Zones) {
		forbid(path.Child("zones"), strings.Join(s.Zones, ","))
	}
	return errs
}

// OfAgent returns the part of the scope that limits the Cluster of an agent that already has a certificate.
func (s Scope) OfAgent() Scope {
	s.ClusterName = ""
	return s
}

// String returns the scope as the flags that set it.
func (s Scope) String() string {
	var parts []string
	for _, each := range []struct{ flag, value string }{
		{"cluster-name", s.ClusterName}, {"cluster-labels", formatLabels(s.Labels)}, {"cluster-provider", s.Provider},
		{"cluster-region", s.Region}, {"cluster-zones", strings.Join(s.Zones, ",")},
	} {
		if each.value != "" {
			parts = append(parts, each.flag+"="+each.value)
		}
	}
	return strings.Join(parts, " ")
}

func formatLabels(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, key := range sortedKeys(labels) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

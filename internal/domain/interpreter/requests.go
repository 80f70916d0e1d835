package interpreter

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	// maxQuantityBytes limits the text of a quantity.
	maxQuantityBytes = 64
	// maxExponent limits the exponent in the text of a quantity.
	maxExponent = 64
	// maxScale is the maximum number of digits behind the decimal point, and of zeros before it, that
	// a quantity has outside of its significant digits.
	maxScale = 18
)

// CheckQuantity returns an error if package resource needs too long to parse a quantity. It must be
// called before a quantity is parsed that a user wrote and no API server validated: the time grows
// with the exponent, and a quantity such as 1e-2147483648 would occupy a process forever. The text
// may be in the quotes of JSON. Other errors of the text remain for the parser.
func CheckQuantity(text string) error {
	text = strings.TrimSpace(strings.Trim(text, `"`))
	if len(text) > maxQuantityBytes {
		return fmt.Errorf("the quantity that begins with %.16q has more than %d bytes: shorten it", text, maxQuantityBytes)
	}
	at := strings.LastIndexAny(text, "eE")
	if at < 0 || strings.ContainsAny(text[at:], "i") || at == len(text)-1 {
		return nil
	}
	if exponent, err := strconv.Atoi(text[at+1:]); err != nil || exponent < -maxExponent || exponent > maxExponent {
		return fmt.Errorf("the quantity %q has an exponent that is not between -%d and %d: correct it", text, maxExponent, maxExponent)
	}
	return nil
}

// RequirementTexts decodes the requirements of a replica only to check their quantities with
// CheckQuantity. It must be decoded before the requirements of a source that is not trusted. Its
// errors have the quantity.
type RequirementTexts struct {
	ResourceRequest map[string]quantityText `json:"resourceRequest"`
}

// ComponentTexts is RequirementTexts for a list of components.
type ComponentTexts []struct {
	ReplicaRequirements RequirementTexts `json:"replicaRequirements"`
}

type quantityText struct{}

// UnmarshalJSON implements json.Unmarshaler. Unlike the error of package resource, its error has the
// text of the quantity.
func (*quantityText) UnmarshalJSON(text []byte) error {
	if err := CheckQuantity(string(text)); err != nil {
		return err
	}
	if err := new(resource.Quantity).UnmarshalJSON(text); err != nil {
		return fmt.Errorf("%.*s is not a quantity: write one such as \"500m\" or \"1Gi\"", maxQuantityBytes, text)
	}
	return nil
}

// ValidateRequests returns an error if a quantity is negative, or too large for an int64. Arithmetic
// with quantities requires this check if a user wrote them and no API server validated them:
// package resource parses a quantity such as 1e2147483647, but comparing it panics.
func ValidateRequests(requests corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if !isValidQuantity(requests[name]) {
			return fmt.Errorf("the quantity of resource %q is not between 0 and %d: correct it", name, math.MaxInt64)
		}
	}
	return nil
}

func isValidQuantity(quantity resource.Quantity) bool {
	copied := quantity.DeepCopy()
	decimal := copied.AsDec()
	if scale := decimal.Scale(); scale < -maxScale || scale > maxScale {
		return false
	}
	return decimal.Sign() >= 0 && decimal.Cmp(resource.NewQuantity(math.MaxInt64, resource.DecimalSI).AsDec()) <= 0
}

type (
	replicasRule   = func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	componentsRule = func(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error)
)

// withValidRequests returns a rule that validates the result of the given rule with
// ValidateRequests.
func withValidRequests(rule replicasRule) replicasRule {
	return func(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
		replicas, requirements, err := rule(ctx, template)
		if err != nil || requirements == nil {
			return replicas, requirements, err
		}
		if err := ValidateRequests(requirements.ResourceRequest); err != nil {
			return 0, nil, fmt.Errorf("checking the requirements of a replica: %w", err)
		}
		return replicas, requirements, nil
	}
}

// withValidComponents returns a rule that validates the result of the given rule with
// ValidateRequests.
func withValidComponents(rule componentsRule) componentsRule {
	return func(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
		components, err := rule(ctx, template)
		if err != nil {
			return nil, err
		}
		for i := range components {
			if requirements := components[i].ReplicaRequirements; requirements != nil {
				if err := ValidateRequests(requirements.ResourceRequest); err != nil {
					return nil, fmt.Errorf("checking the requirements of component %q: %w", components[i].Name, err)
				}
			}
		}
		return components, nil
	}
}

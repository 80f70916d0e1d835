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
	// maxQuantityBytes is the maximum length of a quantity's text.
	maxQuantityBytes = 64
	// maxExponent is the maximum absolute value of a quantity's exponent.
	maxExponent = 64
	// maxScale is the maximum absolute value of a quantity's decimal scale.
	maxScale = 18
)

// CheckQuantity returns an error if parsing the quantity would take too long. It must be called before
// package resource parses a user's quantity that no API server has validated, because the time grows
// with the exponent: a quantity such as 1e-2147483648 would occupy the process forever. The text may
// have JSON quotes. All other errors are left to the parser.
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

// RequirementTexts validates the quantities in a replica's requirements while they are decoded. It must
// be decoded before the requirements from a source that is not trusted. The error contains the quantity.
type RequirementTexts struct {
	ResourceRequest map[string]quantityText `json:"resourceRequest"`
}

// ComponentTexts is RequirementTexts for a list of components.
type ComponentTexts []struct {
	ReplicaRequirements RequirementTexts `json:"replicaRequirements"`
}

type quantityText struct{}

// UnmarshalJSON implements json.Unmarshaler. Unlike the error of package resource, its error contains
// the quantity.
func (*quantityText) UnmarshalJSON(text []byte) error {
	if err := CheckQuantity(string(text)); err != nil {
		return err
	}
	if err := new(resource.Quantity).UnmarshalJSON(text); err != nil {
		return fmt.Errorf("%.*s is not a quantity: write one such as \"500m\" or \"1Gi\"", maxQuantityBytes, text)
	}
	return nil
}

// ValidateRequests returns an error if a quantity is negative or exceeds an int64. It must be called
// before comparing users' quantities that no API server has validated, because package resource parses
// a quantity such as 1e2147483647, but panics when it is compared.
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

// withValidRequests returns a rule that validates the given rule's result with ValidateRequests.
func withValidRequests(rule replicasRule) replicasRule {
	return func(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
		replicas, requirements, err := rule(ctx, template)
		if err != nil || requirements == nil {
			return replicas, requirements, err
		}
		if err := ValidateRequests(requirements.ResourceRequest); err != nil {
			return 0, nil, fmt.Errorf("validating the requirements of a replica: %w", err)
		}
		return replicas, requirements, nil
	}
}

// withValidComponents returns a rule that validates the given rule's result with ValidateRequests.
func withValidComponents(rule componentsRule) componentsRule {
	return func(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
		components, err := rule(ctx, template)
		if err != nil {
			return nil, err
		}
		for i := range components {
			if requirements := components[i].ReplicaRequirements; requirements != nil {
				if err := ValidateRequests(requirements.ResourceRequest); err != nil {
					return nil, fmt.Errorf("validating the requirements of component %q: %w", components[i].Name, err)
				}
			}
		}
		return components, nil
	}
}

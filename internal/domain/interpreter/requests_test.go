package interpreter

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestValidateRequests(t *testing.T) {
	tests := map[string]struct {
		quantity string
		isValid  bool
	}{
		"zero":                         {"0", true},
		"milli units":                  {"100m", true},
		"nano units":                   {"1n", true},
		"a decimal number":             {"0.000000001", true},
		"binary units":                 {"64Mi", true},
		"exponents":                    {"1e3", true},
		"the largest quantity":         {"9223372036854775807", true},
		"the largest unit":             {"7Ei", true},
		"a quantity of 19 digits":      {"9223372036854775808", false},
		"more than an int64 by a unit": {"100E", false},
		"a negative quantity":          {"-1", false},
		"a huge exponent":              {"1e2147483647", false},
		"zero with a huge exponent":    {"0e2147483647", false},
		"an exponent beyond the limit": {"1e19", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := ValidateRequests(corev1.ResourceList{"cpu": resource.MustParse(test.quantity), "memory": resource.MustParse("1Gi")})
			if (err == nil) != test.isValid {
				t.Errorf("err = %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), `"cpu"`) {
				t.Errorf("err = %v does not name the resource", err)
			}
		})
	}
}

func TestCheckQuantity(t *testing.T) {
	tests := map[string]struct {
		text    string
		isShort bool
	}{
		"a number":                   {"100", true},
		"a unit":                     {"100m", true},
		"exa":                        {"1E", true},
		"exbi":                       {"1Ei", true},
		"an exponent":                {"1e3", true},
		"a signed exponent":          {"1E+3", true},
		"JSON":                       {`" 1e3 "`, true},
		"no quantity":                {"many", true},
		"a large exponent":           {"1e65", false},
		"a small exponent":           {"1e-65", false},
		"an exponent without an end": {"1e99999999999999999999", false},
		"a large exponent in JSON":   {`" 1e-2147483648 "`, false},
		"two exponents":              {"1e5e99", false},
		"a long number":              {strings.Repeat("1", 65), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := CheckQuantity(test.text); (err == nil) != test.isShort {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// FuzzQuantities parses quantities that are checked, and computes with those that are valid.
func FuzzQuantities(f *testing.F) {
	for _, seed := range []string{"1", "100m", "1e2147483647", "1e-2147483648", "0.1E2147483647", "12345678901234567890e64", "1e18", "9e-9", "-1", "00e64", "1Ei", "9e-64"} {
		f.Add(seed, "1n")
		f.Add("5Gi", seed)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if CheckQuantity(first) != nil || CheckQuantity(second) != nil {
			return
		}
		a, errA := resource.ParseQuantity(first)
		b, errB := resource.ParseQuantity(second)
		if errA != nil || errB != nil || ValidateRequests(corev1.ResourceList{"a": a, "b": b}) != nil {
			return
		}
		if a.Cmp(b) != -b.Cmp(a) {
			t.Errorf("the order of %s and %s depends on the direction", first, second)
		}
		if a.Value() < 0 {
			t.Errorf("%s became negative", first)
		}
		a.Add(b)
		a.Sub(b)
		_ = a.String()
	})
}

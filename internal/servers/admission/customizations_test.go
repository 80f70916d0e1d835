package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic/fake"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

func customization(name, scripts string) string {
	return `{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: ` + name + `}, spec: {target: {apiVersion: v1, kind: Pod}, customizations: {` + scripts + `}}}`
}

func TestCustomizationConflicts(t *testing.T) {
	const retention, health = `retention: {luaScript: "return"}`, `healthInterpretation: {luaScript: "return"}`
	tests := map[string]struct {
		stored, new string
		code        int32
	}{
		"alone": {new: customization("new", retention)},
		"with a customization of another operation":  {stored: customization("old", health), new: customization("new", retention)},
		"with a customization of the same operation": {stored: customization("old", retention), new: customization("new", retention), code: http.StatusForbidden},
		"with its own earlier state":                 {stored: customization("new", retention), new: customization("new", retention)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stored []runtime.Object
			if test.stored != "" {
				stored = append(stored, parse(t, test.stored))
			}
			kinds := map[schema.GroupVersionResource]string{
				configv1alpha1.GroupVersion.WithResource("resourceinterpretercustomizations"): "ResourceInterpreterCustomizationList",
			}
			plugin := NewPlugin(reviewer())
			plugin.SetDynamicClient(fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, stored...))
			err := plugin.Validate(t.Context(), newAttributes(parse(t, test.new), nil, admission.Create, ""), nil)
			if code := statusCode(err); code != test.code {
				t.Errorf("code = %d, want %d: %v", code, test.code, err)
			}
		})
	}
}

func TestUnavailableControlPlaneIsAnInternalError(t *testing.T) {
	r := reviewer()
	r.Customizations = func(context.Context) ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
		return nil, errors.New("the control plane is unavailable")
	}
	err := NewPlugin(r).Validate(t.Context(), newAttributes(parse(t, customization("new", "")), nil, admission.Create, ""), nil)
	if statusCode(err) != http.StatusInternalServerError || !strings.Contains(err.Error(), "is unavailable") {
		t.Errorf("the plugin returns %v", err)
	}
	_, validateErr := r.validate(t.Context(), &configKinds()[1], "v1alpha1", parse(t, customization("new", "")).Object, nil, false)
	if result := errorResponse(validateErr).Result; result.Code != http.StatusInternalServerError || !strings.Contains(result.Message, "is unavailable") {
		t.Errorf("the webhook returns %+v", result)
	}
}

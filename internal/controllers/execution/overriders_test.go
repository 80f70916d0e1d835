package execution

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestRejectedFieldsNameTheirOverriders(t *testing.T) {
	karmadaWork := &workv1alpha1.Work{}
	karmadaWork.Annotations = map[string]string{policyv1alpha1.AppliedOverrides: `[{"policyName":"size","overriders":{"plaintext":[{"path":"/spec/replicas","operator":"replace","value":"three"}]}}]`}
	manifest := &unstructured.Unstructured{}
	manifest.SetNamespace("shop")
	const suffix = `; the field was changed by OverridePolicy "shop/size", plaintext[0] replace at "/spec/replicas"`
	mistyped := apierrors.NewBadRequest(`Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`)
	tests := map[string]struct {
		err   error
		named bool
	}{
		"a value of the wrong type": {mistyped, true},
		"another bad request":       {apierrors.NewBadRequest("the body is empty"), false},
		"another error":             {errors.New("spec.replicas"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := nameOverriders(karmadaWork, manifest, newRejectionError(test.err, true))
			if strings.HasSuffix(got.Error(), suffix) != test.named {
				t.Errorf("error %q", got)
			}
			if !errors.Is(got, test.err) {
				t.Error("the cause is not wrapped")
			}
		})
	}
}

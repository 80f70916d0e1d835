package epoch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestPermissionIsForOneWorkInOneEpoch(t *testing.T) {
	tests := map[string]struct {
		work       types.UID
		annotation string
		epoch      string
		want       bool
		in         string
	}{
		"the permission of this Work and epoch":                  {"this", "this/b", "b", true, "b"},
		"a permission restored from a backup":                    {"this", "this/a", "b", false, "a"},
		"a permission without an epoch":                          {"this", "this", "b", false, ""},
		"a permission from a control plane without an epoch":     {"this", "this/", "b", false, ""},
		"a control plane without an epoch":                       {"this", "this/", "", true, ""},
		"a permission with an epoch, a control plane without":    {"this", "this/a", "", false, "a"},
		"a permission without an epoch, a control plane without": {"this", "this", "", false, ""},
		"a permission of another Work":                           {"this", "other/b", "b", false, ""},
		"a UID that is a prefix of another":                      {"this", "thisother/b", "b", false, ""},
		"no permission":                                          {"this", "", "b", false, ""},
		"no permission and no epoch":                             {"this", "", "", false, ""},
		"a Work without a UID":                                   {"", "/b", "b", false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{UID: test.work}}
			if test.annotation != "" {
				of.Annotations = map[string]string{workv1alpha1.DeletionAllowedAnnotation: test.annotation}
			}
			if got := (Epoch{ID: test.epoch}).Permits(of); got != test.want {
				t.Errorf("permitted %t, want %t", got, test.want)
			}
			if got := PermittingEpochID(of); got != test.in {
				t.Errorf("permitted in epoch %q, want %q", got, test.in)
			}
		})
	}
}

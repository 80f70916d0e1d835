package guard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestIsConfirmed(t *testing.T) {
	began := time.Date(2030, 5, 1, 10, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		text string
		want bool
	}{
		"no text":                       {"", false},
		"the same second":               {"2030-05-01T10:00:00Z", true},
		"later":                         {"2030-05-01T10:00:01Z", true},
		"earlier, for another deletion": {"2030-05-01T09:59:59Z", false},
		"another zone":                  {"2030-05-01T12:00:00+02:00", true},
		"another zone, earlier time":    {"2030-05-01T10:30:00+02:00", false},
		"not a time":                    {"yes", false},
		"a date":                        {"2030-05-02", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsConfirmed(test.text, began); got != test.want {
				t.Errorf("Confirmed = %v", got)
			}
		})
	}
}

func FuzzConfirmationNeverCoversLaterDeletions(f *testing.F) {
	f.Add("2030-05-01T10:00:00Z", int64(0))
	f.Add("yes", int64(1))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		began := time.Unix(seconds%(1<<40), 0)
		if IsConfirmed(text, began) && !IsConfirmed(text, began.Add(-time.Hour)) {
			t.Error("an earlier deletion is not confirmed")
		}
	})
}

func TestReadUserDecision(t *testing.T) {
	tests := map[string]struct {
		annotation              string
		isConfirmed, isRejected bool
	}{
		"no decision":                      {"", false, false},
		"a confirmation":                   {UserDecision(workv1alpha1.ConfirmHeldDeletion, "u1"), true, false},
		"a rejection":                      {UserDecision(workv1alpha1.RejectHeldDeletion, "u1"), false, true},
		"a decision about an earlier Work": {UserDecision(workv1alpha1.ConfirmHeldDeletion, "u0"), false, false},
		"a decision without a UID":         {workv1alpha1.ConfirmHeldDeletion, false, false},
		"an unknown decision":              {"delete/u1", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{UID: "u1", Annotations: map[string]string{workv1alpha1.HeldDeletionAnnotation: test.annotation}}}
			if confirmed, rejected := ReadUserDecision(karmadaWork); confirmed != test.isConfirmed || rejected != test.isRejected {
				t.Errorf("confirmed %v, rejected %v", confirmed, rejected)
			}
		})
	}
}

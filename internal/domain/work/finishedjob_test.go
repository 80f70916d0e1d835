package work

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestIsFinishedJob(t *testing.T) {
	job := workv1alpha1.ResourceIdentifier{Group: "batch", Version: "v1", Kind: "Job", Namespace: "shop", Name: "import"}
	other, custom := job, job
	other.Name, custom.Group = "export", "batch.example.com"
	const complete = `{"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`
	tests := map[string]struct {
		identifier workv1alpha1.ResourceIdentifier
		status     string
		want       bool
	}{
		"complete":                   {job, complete, true},
		"failed":                     {job, `{"conditions":[{"type":"Failed","status":"True"}]}`, true},
		"running":                    {job, `{"active":1}`, false},
		"suspended":                  {job, `{"conditions":[{"type":"Suspended","status":"True"}]}`, false},
		"not complete any more":      {job, `{"conditions":[{"type":"Complete","status":"False"}]}`, false},
		"no status":                  {job, "", false},
		"an unreadable status":       {job, `{"conditions":7}`, false},
		"another Job":                {other, complete, false},
		"a Job of another API group": {custom, complete, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reported := workv1alpha1.ManifestStatus{Identifier: job}
			if name == "a Job of another API group" {
				reported.Identifier = custom
			}
			if test.status != "" {
				reported.Status = &runtime.RawExtension{Raw: []byte(test.status)}
			}
			if got := IsFinishedJob([]workv1alpha1.ManifestStatus{reported}, test.identifier); got != test.want {
				t.Errorf("finished: %v", got)
			}
		})
	}
}

func TestWasExecuted(t *testing.T) {
	const manifest = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"shop","name":"import"}}`
	karmadaWork := &workv1alpha1.Work{}
	karmadaWork.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	job, err := DecodeManifest(karmadaWork.Spec.Workload.Manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	if WasExecuted(karmadaWork, job) {
		t.Error("a Job without a status counts as executed")
	}
	identifier, err := IdentifyManifest(karmadaWork.Spec.Workload.Manifests, job)
	if err != nil {
		t.Fatal(err)
	}
	karmadaWork.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: identifier, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Complete","status":"True"}]}`)},
	}}
	if !WasExecuted(karmadaWork, job) {
		t.Error("a complete Job does not count as executed")
	}
	job.SetAnnotations(map[string]string{workv1alpha1.RecreateFinishedJobAnnotation: "true"})
	if WasExecuted(karmadaWork, job) {
		t.Error("a Job with the annotation is not executed again")
	}
}

package binding

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// A character such as < has 6 bytes in JSON, so a Work can be larger than its object.
func TestWorkThatIsTooLargeIsReportedAndNotRetried(t *testing.T) {
	large := &workv1alpha1.Work{}
	large.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"data":"` + strings.Repeat("<", 300<<10) + `"}`)}}}
	other := errors.New("connection refused")
	tests := map[string]struct {
		err  error
		want string
	}{
		"the limit of etcd":           {errors.New("etcdserver: request is too large"), "the object has 301 KiB, and its Work has 1801 KiB as escaped JSON"},
		"the limit of the API server": {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "the object has 301 KiB"},
		"the limit of the connection": {errors.New("grpc: trying to send message larger than max (2100000 vs. 2097152)"), "the object has 301 KiB"},
		"another error":               {other, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := explainSize(large, test.err)
			if test.want == "" {
				if !errors.Is(err, other) || len(classifyFailures([]error{err}).retried) != 1 {
					t.Errorf("got %v, and it is not retried", err)
				}
				return
			}
			classes := classifyFailures([]error{&clusterError{"m1", err}})
			if !strings.HasPrefix(err.Error(), test.want) || !errors.Is(err, test.err) {
				t.Errorf("got %v", err)
			}
			if len(classes.reported) != 1 || len(classes.retried) != 0 || classes.isBlocked {
				t.Errorf("classes %+v", classes)
			}
		})
	}
	if explainSize(large, nil) != nil {
		t.Error("a success became an error")
	}
}

package agentcsrapproving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/loop/looptest"
)

func TestRegistrationSurvivesCrashesAroundWrites(t *testing.T) {
	first, second := newRequest(t, "first", "east"), newRequest(t, "second", "east")
	var end string
	looptest.CrashCase{
		NewStore: func() client.WithWatch { return newControlPlane(t, first.DeepCopy(), second.DeepCopy()) },
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			r := newReconciler(karmada)
			return func(ctx context.Context) error {
				var errs []error
				for _, key := range []item{{request: first.Name}, {request: second.Name}, {cluster: "east"}} {
					_, err := r.Reconcile(ctx, key)
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			}
		},
		FinalState: func(ctx context.Context, karmada client.Reader) (_ string, err error) {
			end, err = describeRegistration(ctx, karmada, first.Name, second.Name)
			return end, err
		},
	}.Run(t)
	if !strings.HasPrefix(end, "first: Approved AutoApproved\nsecond: AgentNotApproved IdentityIssued\n") {
		t.Errorf("final state:\n%s", end)
	}
}

// describeRegistration describes the requests' conditions and the objects of the agent of cluster east.
func describeRegistration(ctx context.Context, karmada client.Reader, requests ...string) (string, error) {
	var lines []string
	for _, name := range requests {
		csr := &certificatesv1.CertificateSigningRequest{}
		if err := karmada.Get(ctx, client.ObjectKey{Name: name}, csr); err != nil {
			return "", err
		}
		for _, condition := range csr.Status.Conditions {
			lines = append(lines, fmt.Sprintf("%s: %s %s", name, condition.Type, condition.Reason))
		}
	}
	for _, right := range agent.RBACObjects("east", "karmada-cluster") {
		got := newEmptyLike(right)
		if err := karmada.Get(ctx, client.ObjectKeyFromObject(right), got); err != nil {
			return "", err
		}
		content, err := json.Marshal(contentOf(got))
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%T %s of request %q: %s", got, got.GetName(), got.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation], content))
	}
	return strings.Join(lines, "\n"), nil
}

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

	"karmada.io/karmada/internal/access/crashtest"
	"karmada.io/karmada/internal/domain/agent"
)

func TestAProcessThatDiesAroundAWriteMakesOneAgentAllTheSame(t *testing.T) {
	first, second := requestOf(t, "first", "east"), requestOf(t, "second", "east")
	var end string
	crashtest.Case{
		Store: func() client.WithWatch { return stored(t, first.DeepCopy(), second.DeepCopy()) },
		Start: func(karmada, _ client.WithWatch) func(context.Context) error {
			r := reconcilerOf(karmada)
			return func(ctx context.Context) error {
				var errs []error
				for _, about := range []item{{request: first.Name}, {request: second.Name}, {cluster: "east"}} {
					_, err := r.Reconcile(ctx, about)
					errs = append(errs, err)
				}
				return errors.Join(errs...)
			}
		},
		End: func(ctx context.Context, karmada client.Reader) (_ string, err error) {
			end, err = registrationIn(ctx, karmada, first.Name, second.Name)
			return end, err
		},
	}.Run(t)
	if !strings.HasPrefix(end, "first: Approved AutoApproved\nsecond: AgentNotApproved IdentityIssued\n") {
		t.Errorf("in the end:\n%s", end)
	}
}

// registrationIn is what became of requests, and what the agent of east has.
func registrationIn(ctx context.Context, karmada client.Reader, requests ...string) (string, error) {
	var said []string
	for _, name := range requests {
		csr := &certificatesv1.CertificateSigningRequest{}
		if err := karmada.Get(ctx, client.ObjectKey{Name: name}, csr); err != nil {
			return "", err
		}
		for _, condition := range csr.Status.Conditions {
			said = append(said, fmt.Sprintf("%s: %s %s", name, condition.Type, condition.Reason))
		}
	}
	for _, right := range agent.Rights("east", "karmada-cluster") {
		got := empty(right)
		if err := karmada.Get(ctx, client.ObjectKeyFromObject(right), got); err != nil {
			return "", err
		}
		content, err := json.Marshal(contentOf(got))
		if err != nil {
			return "", err
		}
		said = append(said, fmt.Sprintf("%T %s of request %q: %s", got, got.GetName(), got.GetAnnotations()[agent.RequestAnnotation], content))
	}
	return strings.Join(said, "\n"), nil
}

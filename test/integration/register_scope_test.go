package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	agents "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/testenv"
)

func TestScopedTokenRegistersOnlyItsClusters(t *testing.T) {
	env := alone(t)
	bronze := map[string]string{"tier": "bronze"}
	token := newBootstrapToken(t, env, registration.Token{Scope: agents.Scope{ClusterName: newcomer, Labels: bronze, Region: "eu"}})
	for description, test := range map[string]struct {
		change func(*pull.Register)
		want   string
	}{
		"another name": {func(r *pull.Register) { r.Name = "another" }, `registers only the cluster "newcomer", not "another"`},
		// The command of newRegisterCommand sets zones, which the scope does not contain.
		"zones":          {func(*pull.Register) {}, "spec.zones: Forbidden: the token with which cluster"},
		"another region": {func(r *pull.Register) { r.Zones, r.Region = nil, "us" }, "spec.region: Forbidden: the token with which cluster"},
	} {
		command := newRegisterCommand(t, env, token)
		test.change(&command)
		if err := command.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("registering with %s: got %v, want %q", description, err, test.want)
		}
	}
	awaitRegistrationRemoved(t, env)

	command := newRegisterCommand(t, env, token)
	command.Region, command.Zones = "", nil
	config := registerCluster(t, env, command)
	registered := await(t, env.Karmada, clusterNamed(newcomer), exists)
	if diff := cmp.Diff(bronze, registered.Labels); diff != "" || registered.Spec.Region != "eu" {
		t.Errorf("region %q, labels (-want +got):\n%s", registered.Spec.Region, diff)
	}
	agent := newClientFor(t, env, config)
	for _, patch := range []string{`{"metadata":{"labels":{"tier":"gold"}}}`, `{"spec":{"region":"us"}}`, `{"spec":{"zones":["a"]}}`} {
		if err := agent.Patch(t.Context(), clusterNamed(newcomer), client.RawPatch("application/merge-patch+json", []byte(patch))); !apierrors.IsInvalid(err) {
			t.Errorf("the agent writes %s: %v", patch, err)
		}
	}
	t.Run("the agent deletes its Cluster and creates another one", func(t *testing.T) {
		await(t, env.Karmada, clusterNamed(newcomer), func(c *clusterv1alpha1.Cluster) error {
			if len(c.Finalizers) == 0 {
				return errors.New("the Cluster has no finalizer")
			}
			return nil
		})
		if err := agent.Delete(t.Context(), clusterNamed(newcomer)); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "the agent loses its rights without creating a Cluster", func(ctx context.Context) error {
			created := newAgentCluster(t, env, newcomer)
			created.Labels = map[string]string{"tier": "gold"}
			err := agent.Create(ctx, created)
			switch {
			case err == nil:
				t.Error("the agent created a Cluster with other labels")
				return nil
			case apierrors.IsForbidden(err):
				return nil
			}
			return err
		})
	})
	force := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Karmada: env.Config, Force: true, Wait: testenv.Patience, Log: t.Logf}
	if err := force.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

package aggregated

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// newRules returns rules of a server on which agents have a scope and need approval.
func newRules(scope agent.Scope, scopeErr error) storageRules {
	return storageRules{
		ResourceModels: func() bool { return false }, Now: metav1.Now, Addresses: func() agent.AddressRules { return agent.AddressRules{} },
		Scope:           func(context.Context, string) (agent.Scope, error) { return scope, scopeErr },
		RequireApproval: true,
	}
}

func TestCreationByAgents(t *testing.T) {
	unapproved := []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnapproved, Effect: corev1.TaintEffectNoSchedule}}
	tests := map[string]struct {
		user       string
		scope      agent.Scope
		scopeErr   error
		region     string
		wantTaints []corev1.Taint
		wantRegion string
		wantErr    string
	}{
		"an agent":                         {user: agent.User("east"), region: "eu", wantTaints: unapproved, wantRegion: "eu"},
		"an agent with a scope":            {user: agent.User("east"), scope: agent.Scope{Region: "eu"}, wantTaints: unapproved, wantRegion: "eu"},
		"an agent that leaves its scope":   {user: agent.User("east"), scope: agent.Scope{Region: "eu"}, region: "us", wantTaints: unapproved, wantRegion: "us", wantErr: "spec.region"},
		"an agent whose scope is unknown":  {user: agent.User("east"), scopeErr: errors.New("timeout"), wantTaints: unapproved, wantErr: "metadata.name"},
		"an administrator is not affected": {user: "system:admin", scope: agent.Scope{Region: "eu"}, region: "us", wantRegion: "us"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: test.user})
			writes := newStrategy(nil, newRules(test.scope, test.scopeErr))
			created := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, Region: test.region}}
			writes.PrepareForCreate(ctx, created)
			errs := writes.Validate(ctx, created)
			if test.wantErr == "" && len(errs) > 0 || test.wantErr != "" && (len(errs) != 1 || errs[0].Field != test.wantErr) {
				t.Errorf("got %v, want an error of field %q", errs, test.wantErr)
			}
			if diff := cmp.Diff(test.wantTaints, created.Spec.Taints); diff != "" || created.Spec.Region != test.wantRegion {
				t.Errorf("region %q, taints (-want +got):\n%s", created.Spec.Region, diff)
			}
		})
	}
}

func TestAgentCannotApproveItsCluster(t *testing.T) {
	writes := newStrategy(nil, newRules(agent.Scope{}, nil))
	stored := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	agent.RequireApproval(stored)
	approved := stored.DeepCopy()
	approved.Spec.Taints = nil
	for name, wantErrs := range map[string]int{agent.User("east"): 1, "system:admin": 0} {
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		written := approved.DeepCopy()
		writes.PrepareForUpdate(ctx, written, stored)
		if errs := writes.ValidateUpdate(ctx, written, stored); len(errs) != wantErrs || len(written.Spec.Taints) > 0 {
			t.Errorf("%s: %v, taints %v", name, errs, written.Spec.Taints)
		}
	}
}

func TestConfirmationInTheFutureIsRejected(t *testing.T) {
	writes, ctx := newStrategy(nil, newRules(agent.Scope{}, nil)), request.WithUser(t.Context(), &user.DefaultInfo{Name: "system:admin"})
	stored := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	for distance, wantErrs := range map[time.Duration]int{-time.Hour: 0, time.Hour: 1} {
		written := stored.DeepCopy()
		written.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: time.Now().Add(distance).UTC().Format(time.RFC3339)}
		if errs := writes.Validate(ctx, written); len(errs) != wantErrs {
			t.Errorf("creation, %s from now: %v", distance, errs)
		}
		if errs := writes.ValidateUpdate(ctx, written, stored); len(errs) != wantErrs {
			t.Errorf("update, %s from now: %v", distance, errs)
		}
	}
}

// An agent can hold back the body of a request that was authorized while an earlier Cluster of the
// same name existed.
func TestDelayedRequestsOfAgentsAreRejected(t *testing.T) {
	writes := newStrategy(nil, newRules(agent.Scope{}, nil))
	created := metav1.NewTime(time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		user     string
		mode     clusterv1alpha1.ClusterSyncMode
		received time.Time
		wantErr  string
	}{
		"a request for this Cluster":       {user: agent.User("east"), mode: clusterv1alpha1.Pull, received: created.Add(time.Second)},
		"a request for an earlier Cluster": {user: agent.User("east"), mode: clusterv1alpha1.Pull, received: created.Add(-time.Second), wantErr: "metadata.creationTimestamp"},
		"a Cluster without an agent":       {user: agent.User("east"), mode: clusterv1alpha1.Push, received: created.Add(time.Second), wantErr: "spec.syncMode"},
		"an administrator":                 {user: "system:admin", mode: clusterv1alpha1.Push, received: created.Add(-time.Second)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := request.WithReceivedTimestamp(request.WithUser(t.Context(), &user.DefaultInfo{Name: test.user}), test.received)
			stored := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", CreationTimestamp: created}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: test.mode}}
			for path, errs := range map[string]field.ErrorList{
				"clusters":        writes.ValidateUpdate(ctx, stored.DeepCopy(), stored),
				"clusters/status": statusStrategy{writes}.ValidateUpdate(ctx, stored.DeepCopy(), stored),
			} {
				if test.wantErr == "" && len(errs) > 0 || test.wantErr != "" && (len(errs) != 1 || errs[0].Field != test.wantErr) {
					t.Errorf("%s: got %v, want an error of field %q", path, errs, test.wantErr)
				}
			}
		})
	}
}

package agentcsrapproving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolsrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

// creationTime is the creation time of all stored objects.
var creationTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newControlPlane returns a control plane that contains the given objects and permits every user to
// register.
func newControlPlane(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := looptest.NewScheme(t, corev1.AddToScheme, rbacv1.AddToScheme, certificatesv1.AddToScheme, authorizationv1.AddToScheme,
		clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&certificatesv1.CertificateSigningRequest{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, karmada client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if review, ok := object.(*authorizationv1.SubjectAccessReview); ok {
					review.Status.Allowed = true
					return nil
				}
				object.SetUID(types.UID("uid of " + object.GetName()))
				return karmada.Create(ctx, object, options...)
			},
		}).Build()
}

func newReconciler(karmada client.WithWatch) *reconciler {
	return &reconciler{karmada: karmada, live: karmada, events: loop.NewEvents(toolsrecord.NewFakeRecorder(100)), now: func() time.Time { return creationTime }}
}

// newRequest returns a CertificateSigningRequest for a cluster's agent.
func newRequest(t *testing.T, name, cluster string, conditions ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: agent.User(cluster), Organization: []string{agent.Group}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(creationTime)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Username: "holder of " + name, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	for _, condition := range conditions {
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	return request
}

func listConditions(t *testing.T, karmada client.Client, name string) (conditions []string) {
	t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := karmada.Get(t.Context(), client.ObjectKey{Name: name}, csr); err != nil {
		t.Fatal(err)
	}
	for _, condition := range csr.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s %s", condition.Type, condition.Reason))
	}
	return conditions
}

// reconcileUntilStable repeats passes until a pass does not wait for a deletion.
func reconcileUntilStable(r *reconciler, key item) error {
	for range 100 {
		result, err := r.Reconcile(context.Background(), key)
		if err != nil || result.RequeueAfter != deletionWaitDelay {
			return err
		}
	}
	return fmt.Errorf("%v still requests passes", key)
}

func TestFormerConditionIsReplaced(t *testing.T) {
	request := newRequest(t, "east-1", "east", certificatesv1.CertificateApproved, clusterv1alpha1.FormerAgentPermissionsGranted)
	karmada := newControlPlane(t, request)
	if err := reconcileUntilStable(newReconciler(karmada), item{request: request.Name}); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatal(err)
	}
	if findCondition(request, clusterv1alpha1.FormerAgentPermissionsGranted) != nil || findCondition(request, agent.ConditionPermissionsGranted) == nil {
		t.Errorf("the conditions are %v", request.Status.Conditions)
	}
}

func TestConcurrentRequestsForANameApproveOne(t *testing.T) {
	for range 20 {
		const requesters = 4
		var objects []client.Object
		for i := range requesters {
			objects = append(objects, newRequest(t, fmt.Sprintf("east-%d", i), "east"))
		}
		karmada := newControlPlane(t, objects...)
		var all sync.WaitGroup
		for i := range requesters {
			// Each request has its own worker, as can happen while the leader changes.
			all.Go(func() {
				if err := reconcileUntilStable(newReconciler(karmada), item{request: objects[i].GetName()}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		got := map[string]int{}
		for _, object := range objects {
			for _, condition := range listConditions(t, karmada, object.GetName()) {
				got[condition]++
			}
		}
		if diff := cmp.Diff(map[string]int{"Approved AutoApproved": 1, "AgentNotApproved IdentityIssued": requesters - 1}, got); diff != "" {
			t.Fatalf("conditions (-want +got):\n%s", diff)
		}
	}
}

func TestExpiredRequestsAreDeleted(t *testing.T) {
	tests := map[string]struct {
		conditions   []certificatesv1.RequestConditionType
		age          time.Duration
		deleted      bool
		requeueAfter time.Duration
	}{
		"a recent request for manual approval":   {[]certificatesv1.RequestConditionType{agent.ConditionNotApproved}, time.Hour, false, manualDecisionPeriod - time.Hour},
		"a request without a decision for a day": {[]certificatesv1.RequestConditionType{agent.ConditionNotApproved}, manualDecisionPeriod, true, 0},
		"a denied request":                       {[]certificatesv1.RequestConditionType{agent.ConditionNotApproved, certificatesv1.CertificateDenied}, manualDecisionPeriod, false, 0},
		"a failed request":                       {[]certificatesv1.RequestConditionType{agent.ConditionNotApproved, certificatesv1.CertificateFailed}, manualDecisionPeriod, false, 0},
		"an approved request":                    {[]certificatesv1.RequestConditionType{agent.ConditionNotApproved, certificatesv1.CertificateApproved, agent.ConditionPermissionsGranted}, manualDecisionPeriod, false, 0},
		"a request without any condition":        {nil, manualDecisionPeriod, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := newRequest(t, "east-1", "east", test.conditions...)
			karmada := newControlPlane(t, request)
			r := newReconciler(karmada)
			r.now = func() time.Time { return creationTime.Add(test.age) }
			result, err := r.Reconcile(t.Context(), item{request: request.Name})
			if err != nil || result.RequeueAfter != test.requeueAfter {
				t.Errorf("requeue after %s, %v; want %s", result.RequeueAfter, err, test.requeueAfter)
			}
			err = karmada.Get(t.Context(), client.ObjectKeyFromObject(request), request)
			if deleted := client.IgnoreNotFound(err) == nil && err != nil; deleted != test.deleted {
				t.Errorf("deleted: %t (%v), want %t", deleted, err, test.deleted)
			}
		})
	}
}

// newManagedRole returns the ClusterRole that this controller creates for the agent of cluster east.
func newManagedRole(owners ...metav1.OwnerReference) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: agent.RoleName("east"), Labels: map[string]string{clusterv1alpha1.AgentLabel: "east"}, OwnerReferences: owners,
		Annotations: map[string]string{clusterv1alpha1.AgentRequestAnnotation: "1"},
	}}
}

func TestAgentOfANameGetsNoPermissionsForAnotherCluster(t *testing.T) {
	owned := newManagedRole(metav1.OwnerReference{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "east", UID: "cluster"})
	foreign := newManagedRole()
	foreign.Labels = nil
	tests := map[string]struct {
		mode clusterv1alpha1.ClusterSyncMode
		role *rbacv1.ClusterRole
		kept bool
	}{
		"a name registered before a cluster joined under it": {clusterv1alpha1.Push, newManagedRole(), false},
		"the agent of a cluster that changed to push mode":   {clusterv1alpha1.Push, owned, true},
		"a role of another creator":                          {clusterv1alpha1.Push, foreign, true},
		"the agent of a pull mode cluster":                   {clusterv1alpha1.Pull, newManagedRole(), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "cluster"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: test.mode}}
			karmada := newControlPlane(t, cluster, test.role)
			if err := reconcileUntilStable(newReconciler(karmada), item{cluster: "east"}); err != nil {
				t.Fatal(err)
			}
			err := karmada.Get(t.Context(), client.ObjectKeyFromObject(test.role), &rbacv1.ClusterRole{})
			if client.IgnoreNotFound(err) != nil || (err == nil) != test.kept {
				t.Errorf("reading the role: %v, want it kept: %t", err, test.kept)
			}
		})
	}
}

func TestChangedPermissionsAreRepaired(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "cluster"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	tests := map[string]func(t *testing.T, karmada client.Client, right client.Object) error{
		"deleted": func(t *testing.T, karmada client.Client, right client.Object) error {
			return karmada.Delete(t.Context(), right)
		},
		"emptied": func(t *testing.T, karmada client.Client, right client.Object) error {
			switch right := right.(type) {
			case *rbacv1.ClusterRole:
				right.Rules = nil
			case *rbacv1.Role:
				right.Rules = nil
			case *rbacv1.ClusterRoleBinding:
				right.Subjects = nil
			case *rbacv1.RoleBinding:
				right.Subjects = nil
			}
			return karmada.Update(t.Context(), right)
		},
	}
	for name, damage := range tests {
		for i := range agent.RBACObjects("east", "karmada-cluster") {
			t.Run(fmt.Sprintf("%s, number %d", name, i), func(t *testing.T) {
				karmada := newControlPlane(t, cluster.DeepCopy(), newManagedRole())
				r := newReconciler(karmada)
				if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
					t.Fatal(err)
				}
				right := newEmptyLike(agent.RBACObjects("east", "karmada-cluster")[i])
				if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(agent.RBACObjects("east", "karmada-cluster")[i]), right); err != nil {
					t.Fatal(err)
				}
				if err := damage(t, karmada, right); err != nil {
					t.Fatal(err)
				}
				if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
					t.Fatal(err)
				}
				want := agent.RBACObjects("east", "karmada-cluster")[i]
				got := newEmptyLike(want)
				if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(want), got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(contentOf(want), contentOf(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func contentOf(right client.Object) any {
	switch right := right.(type) {
	case *rbacv1.ClusterRole:
		return right.Rules
	case *rbacv1.Role:
		return right.Rules
	case *rbacv1.ClusterRoleBinding:
		return right.Subjects
	case *rbacv1.RoleBinding:
		return right.Subjects
	}
	return right
}

func TestUnusedNamespaceOfARegistrationIsDeleted(t *testing.T) {
	newNamespace := func(annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace("east"), UID: "space", Annotations: annotations}}
	}
	registered := map[string]string{clusterv1alpha1.AgentRequestAnnotation: "1"}
	tests := map[string]struct {
		objects []client.Object
		deleted bool
	}{
		"an incomplete registration":     {[]client.Object{newNamespace(registered)}, true},
		"a namespace of another creator": {[]client.Object{newNamespace(nil)}, false},
		"an agent with permissions":      {[]client.Object{newNamespace(registered), newManagedRole()}, false},
		"a namespace with a Work": {
			[]client.Object{newNamespace(registered), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace("east"), Name: "held"}}}, false,
		},
		"an existing Cluster": {
			[]client.Object{newNamespace(registered), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := newControlPlane(t, test.objects...)
			if err := reconcileUntilStable(newReconciler(karmada), item{cluster: "east"}); err != nil {
				t.Fatal(err)
			}
			err := karmada.Get(t.Context(), client.ObjectKeyFromObject(newNamespace(nil)), &corev1.Namespace{})
			if client.IgnoreNotFound(err) != nil || (err != nil) != test.deleted {
				t.Errorf("reading the namespace: %v, want it deleted: %t", err, test.deleted)
			}
		})
	}
}

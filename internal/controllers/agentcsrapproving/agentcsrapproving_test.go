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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolsrecord "k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/domain/agent"
)

// began is when all that is stored was created.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// stored is a control plane that holds the objects and lets everybody register.
func stored(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
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

func reconcilerOf(karmada client.WithWatch) *reconciler {
	return &reconciler{karmada: karmada, live: karmada, events: observe.NewEvents(toolsrecord.NewFakeRecorder(100)), now: func() time.Time { return began }}
}

// requestOf asks for the certificate of the agent of a cluster.
func requestOf(t *testing.T, name, cluster string, conditions ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
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
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(began)},
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

func conditionsOf(t *testing.T, karmada client.Client, name string) (conditions []string) {
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

// settle reconciles until there is nothing to do soon.
func settle(r *reconciler, about item) error {
	for range 100 {
		result, err := r.Reconcile(context.Background(), about)
		if err != nil || result.RequeueAfter != waitDelay {
			return err
		}
	}
	return fmt.Errorf("%v does not settle", about)
}

func TestOneOfManyWhoWantANameAtOnceGetsIt(t *testing.T) {
	for range 20 {
		const askers = 4
		var objects []client.Object
		for i := range askers {
			objects = append(objects, requestOf(t, fmt.Sprintf("east-%d", i), "east"))
		}
		karmada := stored(t, objects...)
		var all sync.WaitGroup
		for i := range askers {
			// Each has a worker of its own, as when one leader is not gone yet.
			all.Go(func() {
				if err := settle(reconcilerOf(karmada), item{request: objects[i].GetName()}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		got := map[string]int{}
		for _, object := range objects {
			for _, condition := range conditionsOf(t, karmada, object.GetName()) {
				got[condition]++
			}
		}
		if diff := cmp.Diff(map[string]int{"Approved AutoApproved": 1, "AgentNotApproved IdentityIssued": askers - 1}, got); diff != "" {
			t.Fatalf("conditions (-want +got):\n%s", diff)
		}
	}
}

func TestRefusedRequestsAreForgottenInTime(t *testing.T) {
	tests := map[string]struct {
		conditions []certificatesv1.RequestConditionType
		age        time.Duration
		gone       bool
		again      time.Duration
	}{
		"one that was just refused is for people":  {[]certificatesv1.RequestConditionType{agent.NotApproved}, time.Hour, false, refusedLife - time.Hour},
		"one that nobody has answered for a day":   {[]certificatesv1.RequestConditionType{agent.NotApproved}, refusedLife, true, 0},
		"one that a person has denied":             {[]certificatesv1.RequestConditionType{agent.NotApproved, certificatesv1.CertificateDenied}, refusedLife, false, 0},
		"one whose certificate could not be made":  {[]certificatesv1.RequestConditionType{agent.NotApproved, certificatesv1.CertificateFailed}, refusedLife, false, 0},
		"one that was approved a long time ago":    {[]certificatesv1.RequestConditionType{agent.NotApproved, certificatesv1.CertificateApproved, agent.RightsGranted}, refusedLife, false, 0},
		"one that is not answered is answered now": {nil, refusedLife, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := requestOf(t, "east-1", "east", test.conditions...)
			karmada := stored(t, request)
			r := reconcilerOf(karmada)
			r.now = func() time.Time { return began.Add(test.age) }
			result, err := r.Reconcile(t.Context(), item{request: request.Name})
			if err != nil || result.RequeueAfter != test.again {
				t.Errorf("again after %s, %v; want %s", result.RequeueAfter, err, test.again)
			}
			err = karmada.Get(t.Context(), client.ObjectKeyFromObject(request), request)
			if gone := client.IgnoreNotFound(err) == nil && err != nil; gone != test.gone {
				t.Errorf("gone: %t (%v), want %t", gone, err, test.gone)
			}
		})
	}
}

// managedRole is the ClusterRole of the agent of east as it is kept here.
func managedRole(owners ...metav1.OwnerReference) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: agent.RoleName("east"), Labels: map[string]string{agent.ManagedLabel: "east"}, OwnerReferences: owners,
		Annotations: map[string]string{agent.RequestAnnotation: "1"},
	}}
}

func TestTheNameOfAnAgentGivesNoRightsToAnotherCluster(t *testing.T) {
	owned := managedRole(metav1.OwnerReference{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "east", UID: "cluster"})
	foreign := managedRole()
	foreign.Labels = nil
	tests := map[string]struct {
		mode  clusterv1alpha1.ClusterSyncMode
		role  *rbacv1.ClusterRole
		keeps bool
	}{
		"a name that was taken before a cluster joined":    {clusterv1alpha1.Push, managedRole(), false},
		"the agent of a cluster that is pushed to by now":  {clusterv1alpha1.Push, owned, true},
		"rights that somebody else keeps":                  {clusterv1alpha1.Push, foreign, true},
		"the agent of a cluster that has just reported in": {clusterv1alpha1.Pull, managedRole(), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "cluster"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: test.mode}}
			karmada := stored(t, cluster, test.role)
			if err := settle(reconcilerOf(karmada), item{cluster: "east"}); err != nil {
				t.Fatal(err)
			}
			err := karmada.Get(t.Context(), client.ObjectKeyFromObject(test.role), &rbacv1.ClusterRole{})
			if client.IgnoreNotFound(err) != nil || (err == nil) != test.keeps {
				t.Errorf("reading the role: %v, want that it is kept: %t", err, test.keeps)
			}
		})
	}
}

func TestRightsThatSomebodyChangedAreRepaired(t *testing.T) {
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
		for i := range agent.Rights("east", "karmada-cluster") {
			t.Run(fmt.Sprintf("%s, number %d", name, i), func(t *testing.T) {
				karmada := stored(t, cluster.DeepCopy(), managedRole())
				r := reconcilerOf(karmada)
				if err := settle(r, item{cluster: "east"}); err != nil {
					t.Fatal(err)
				}
				right := empty(agent.Rights("east", "karmada-cluster")[i])
				if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(agent.Rights("east", "karmada-cluster")[i]), right); err != nil {
					t.Fatal(err)
				}
				if err := damage(t, karmada, right); err != nil {
					t.Fatal(err)
				}
				if err := settle(r, item{cluster: "east"}); err != nil {
					t.Fatal(err)
				}
				want := agent.Rights("east", "karmada-cluster")[i]
				got := empty(want)
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

func TestOnlyTheEmptyNamespaceOfARegistrationThatWasGivenUpGoes(t *testing.T) {
	space := func(annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.ExecutionNamespace("east"), UID: "space", Annotations: annotations}}
	}
	registered := map[string]string{agent.RequestAnnotation: "1"}
	tests := map[string]struct {
		objects []client.Object
		gone    bool
	}{
		"nothing came of the registration": {[]client.Object{space(registered)}, true},
		"somebody else made it":            {[]client.Object{space(nil)}, false},
		"the agent has its rights":         {[]client.Object{space(registered), managedRole()}, false},
		"there is a Work": {
			[]client.Object{space(registered), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: agent.ExecutionNamespace("east"), Name: "held"}}}, false,
		},
		"the Cluster is there": {
			[]client.Object{space(registered), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := stored(t, test.objects...)
			if err := settle(reconcilerOf(karmada), item{cluster: "east"}); err != nil {
				t.Fatal(err)
			}
			err := karmada.Get(t.Context(), client.ObjectKeyFromObject(space(nil)), &corev1.Namespace{})
			if client.IgnoreNotFound(err) != nil || (err != nil) != test.gone {
				t.Errorf("reading the namespace: %v, want that it is gone: %t", err, test.gone)
			}
		})
	}
}

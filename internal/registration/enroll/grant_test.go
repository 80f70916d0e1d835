package enroll

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
)

func TestMemberObjects(t *testing.T) {
	system := map[string]string{"karmada.io/system": "true"}
	own := registration.NewServiceAccount("karmada-cluster", AccountName("east"))
	tests := map[string]struct{ got, want client.Object }{
		"namespace": {registration.NewNamespace("karmada-cluster"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-cluster", Labels: system}}},
		"service account": {own, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-cluster", Name: "karmada-east", Labels: system,
		}}},
		"token secret with the name of its account": {NewTokenSecret(own), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-cluster", Name: "karmada-east", Labels: system,
				Annotations: map[string]string{"kubernetes.io/service-account.name": "karmada-east"},
			},
			Type: "kubernetes.io/service-account-token",
		}},
		"role that allows everything": {NewClusterRole("east"), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-east", Labels: system},
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
				{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}},
			},
		}},
		"binding of the role": {NewClusterRoleBinding("east", "karmada-cluster"), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-east", Labels: system},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "karmada-controller-manager:karmada-east"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "karmada-cluster", Name: "karmada-east"}},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdoptSecret(t *testing.T) {
	owner := func(kind, name string) metav1.OwnerReference { return metav1.OwnerReference{Kind: kind, Name: name} }
	current := owner("Cluster", "east")
	current.UID = "now"
	tests := map[string]struct {
		owners, want []metav1.OwnerReference
		uid          types.UID
		wantErr      string
	}{
		"no owner":                                 {},
		"owned by the current Cluster":             {owners: []metav1.OwnerReference{current}, uid: "now", want: []metav1.OwnerReference{current}},
		"owned by a deleted Cluster with a UID":    {owners: []metav1.OwnerReference{current}, uid: "later"},
		"owned by a deleted Cluster without a UID": {owners: []metav1.OwnerReference{owner("Cluster", "east")}},
		"owned by another Cluster":                 {owners: []metav1.OwnerReference{owner("Cluster", "east-impersonator")}, wantErr: `it belongs to Cluster "east-impersonator"`},
		"also owned by another kind":               {owners: []metav1.OwnerReference{owner("Vault", "v"), owner("Cluster", "east")}, want: []metav1.OwnerReference{owner("Vault", "v")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"mine": "1"}, OwnerReferences: test.owners},
				Data:       map[string][]byte{"token": []byte("old"), "more": nil},
			}
			want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: registration.SystemLabels()}, Data: map[string][]byte{"token": []byte("new")}}
			err := AdoptSecret(have, want, "east", test.uid)
			if test.wantErr != "" {
				if err == nil || err.Error() != test.wantErr {
					t.Fatalf("got %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, have.OwnerReferences, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Data, have.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"mine": "1", "karmada.io/system": "true"}, have.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckTokenSecret(t *testing.T) {
	want := NewTokenSecret(registration.NewServiceAccount("ns", "karmada-east"))
	opaque := want.DeepCopy()
	opaque.Type = corev1.SecretTypeOpaque
	ofOtherAccount := want.DeepCopy()
	ofOtherAccount.Annotations[corev1.ServiceAccountNameKey] = "default"
	tests := map[string]struct {
		have *corev1.Secret
		want string
	}{
		"created by an earlier run": {want.DeepCopy(), ""},
		"another type":              {opaque, "it is not of type kubernetes.io/service-account-token"},
		"another account":           {ofOtherAccount, `it belongs to service account "default"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := verifyTokenSecret(test.have, want); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAdoptBinding(t *testing.T) {
	want := NewClusterRoleBinding("east", "ns")
	have := NewClusterRoleBinding("east", "old")
	if err := AdoptBinding(have, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Subjects, have.Subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	have.RoleRef.Name = "view"
	if err := AdoptBinding(have, want); err == nil || !strings.Contains(err.Error(), "it grants ClusterRole view") {
		t.Errorf("got %v", err)
	}
}

func TestAccountOfOtherControlPlane(t *testing.T) {
	accounts := func(names ...string) (all []corev1.ServiceAccount) {
		for _, name := range names {
			all = append(all, *registration.NewServiceAccount("karmada-cluster", name))
		}
		return all
	}
	ownedBy := func(owner string, accounts []corev1.ServiceAccount) []corev1.ServiceAccount {
		accounts[0].Annotations = map[string]string{clusterv1alpha1.ControlPlaneAnnotation: owner}
		return accounts
	}
	tests := map[string]struct {
		accounts []corev1.ServiceAccount
		want     string
	}{
		"the account belongs to another control plane": {ownedBy("other", accounts("karmada-east")), "karmada-east"},
		"the account belongs to this control plane":    {ownedBy("this", accounts("karmada-east")), ""},
		"only accounts of this Cluster":                {accounts("default", "karmada-east", "karmada-impersonator"), ""},
		"accounts of this Cluster are deleted":         {accounts("default"), ""},
		"an account of another control plane":          {accounts("default", "karmada-production", "karmada-impersonator"), "karmada-production"},
		"an unrelated account":                         {accounts("default", "backup"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := accountOfOtherControlPlane(test.accounts, "east", "this"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// These tests check which requests are made and in what order; how an API server
// answers them is for the integration tests.

// refusal makes creating and patching an object of this name fail.
type refusal string

func (r refusal) funcs() interceptor.Funcs {
	refused := func(object client.Object) error {
		if object.GetName() == string(r) {
			return errors.New("refused")
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := refused(object); err != nil {
				return err
			}
			object.SetUID(types.UID("uid of " + object.GetName()))
			return api.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := refused(object); err != nil {
				return err
			}
			return api.Patch(ctx, object, patch, options...)
		},
	}
}

func sideWith(t *testing.T, refused refusal, objects ...client.Object) *side {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return &side{
		name: "it", host: "https://it", log: t.Logf, kinds: kindsOfNamespaces,
		api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(refused.funcs()).Build(),
	}
}

func kindsOfNamespaces() ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"ConfigMap", "Pod", "Secret", "ServiceAccount"} {
		kinds = append(kinds, corev1.SchemeGroupVersion.WithKind(kind))
	}
	return kinds, nil
}

// content names everything that a side holds, sorted.
func content(t *testing.T, s *side) []string {
	t.Helper()
	var names []string
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &coordinationv1.LeaseList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &clusterv1alpha1.ClusterList{}, &workv1alpha1.WorkList{},
	} {
		if err := s.api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			names = append(names, s.describe(item.(client.Object)))
		}
	}
	slices.Sort(names)
	return names
}

func secret(name string, owners ...metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}}
}

func TestRegisteringIsUndoneByWhatItMadeItself(t *testing.T) {
	tests := map[string]struct {
		refused refusal
		before  []client.Object
		want    []string // what is there afterwards
		fails   bool
	}{
		"all goes well": {
			want: []string{"Cluster east", "Namespace ns", "Secret ns/east", "Secret ns/east-impersonator"},
		},
		"what an earlier run left is used": {
			before: []client.Object{namespace("ns"), secret("east"), secret("east-impersonator")},
			want:   []string{"Cluster east", "Namespace ns", "Secret ns/east", "Secret ns/east-impersonator"},
		},
		"the last secret is refused: nothing remains": {
			refused: "east", fails: true,
		},
		"what was there before remains": {
			refused: "east", fails: true,
			before: []client.Object{namespace("ns"), secret("east-impersonator")},
			want:   []string{"Namespace ns", "Secret ns/east-impersonator"},
		},
		"a namespace that others use by now remains": {
			refused: "east", fails: true,
			before: []client.Object{secret("west")},
			want:   []string{"Namespace ns", "Secret ns/west"},
		},
		"the secret of another Cluster is not taken": {
			before: []client.Object{namespace("ns"), secret("east-impersonator", metav1.OwnerReference{Kind: "Cluster", Name: "east-impersonator"})},
			want:   []string{"Namespace ns", "Secret ns/east-impersonator"},
			fails:  true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada, member := sideWith(t, test.refused, test.before...), sideWith(t, "")
			join := Join{Name: "east", ClusterNamespace: "ns"}
			wanted := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			err := join.register(t.Context(), karmada, wanted, access{token: []byte("t")})
			if (err != nil) != test.fails {
				t.Fatalf("registering: %v", err)
			}
			if err != nil {
				if err := undo(t.Context(), karmada, member); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheClusterOwnsItsSecrets(t *testing.T) {
	karmada := sideWith(t, "")
	join := Join{Name: "east", ClusterNamespace: "ns"}
	if err := join.register(t.Context(), karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, access{}); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := karmada.api.List(t.Context(), secrets); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		owner := metav1.GetControllerOf(&s)
		if owner == nil || owner.Kind != "Cluster" || owner.UID != "uid of east" || owner.APIVersion != "cluster.karmada.io/v1alpha1" {
			t.Errorf("controller of Secret %s is %+v", s.Name, owner)
		}
	}
}

func TestUndoGoesOnWhenTheCallerHasGivenUp(t *testing.T) {
	karmada, member := sideWith(t, ""), sideWith(t, "")
	if _, err := member.ensure(t.Context(), account("ns", "karmada-east"), func(client.Object) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := undo(ctx, karmada, member); err != nil {
		t.Fatal(err)
	}
	if left := content(t, member); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestADryRunTellsAndChangesNothing(t *testing.T) {
	karmada, member := sideWith(t, ""), sideWith(t, "", role("east"))
	var told []string
	log := Log(func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) })
	karmada.dryRun, member.dryRun, karmada.log, member.log = true, true, log, log
	join := Join{Name: "east", ClusterNamespace: "ns", DryRun: true}
	before := content(t, member)
	credentials, err := join.grantAccess(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	if err := join.register(t.Context(), karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, credentials); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{before, nil}, [][]string{content(t, member), content(t, karmada)}); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	for _, line := range told {
		if !strings.HasPrefix(line, "would ") {
			t.Errorf("told %q", line)
		}
	}
	if !slices.Contains(told, "would reuse ClusterRole karmada-controller-manager:karmada-east in it") || !slices.Contains(told, "would create Cluster east in it") {
		t.Errorf("told %q", told)
	}
}

func TestUnjoiningFindsTheCluster(t *testing.T) {
	push, pull := registered("east", "id", clusterv1alpha1.Push), registered("agent", "id", clusterv1alpha1.Pull)
	karmada := sideWith(t, "", &push, &pull)
	tests := map[string]string{
		"east":  "",
		"west":  `there is no Cluster "west" in it (https://it); with --force what a run that was interrupted has left of it is deleted`,
		"agent": `cluster "agent" is in Pull mode: use unregister`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := (Unjoin{Name: name}).find(t.Context(), karmada); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestCleaningUpAMember(t *testing.T) {
	joined := func(name string) []client.Object {
		own := account("ns", accountName(name))
		return []client.Object{own, tokenRequest(own), role(name), roleBinding(name, "ns")}
	}
	shared := func(labelled bool) []client.Object {
		ns := namespace("ns")
		if !labelled {
			ns.Labels = nil
		}
		common := account("ns", impersonator)
		return []client.Object{ns, common, tokenRequest(common)}
	}
	tests := map[string]struct {
		before [][]client.Object
		want   []string
	}{
		"everything goes with the last control plane": {before: [][]client.Object{shared(true), joined("east")}},
		"nothing is there any more":                   {},
		"a namespace that joining did not make stays": {
			before: [][]client.Object{shared(false), joined("east")},
			want:   []string{"Namespace ns"},
		},
		"a namespace with something else in it stays": {
			before: [][]client.Object{shared(true), joined("east"), {secret("mine")}},
			want:   []string{"Namespace ns", "Secret ns/mine"},
		},
		"a namespace in which somebody runs something stays": {
			before: [][]client.Object{shared(true), joined("east"), {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}}},
			want:   []string{"Namespace ns"},
		},
		"another control plane keeps its access": {
			before: [][]client.Object{shared(true), joined("east"), joined("other")},
			want: []string{
				"ClusterRole karmada-controller-manager:karmada-other", "ClusterRoleBinding karmada-controller-manager:karmada-other",
				"Namespace ns", "Secret ns/karmada-impersonator", "Secret ns/karmada-other",
				"ServiceAccount ns/karmada-impersonator", "ServiceAccount ns/karmada-other",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member := sideWith(t, "", slices.Concat(test.before...)...)
			unjoin := Unjoin{Name: "east", ClusterNamespace: "ns", Log: t.Logf}
			if err := unjoin.cleanUp(t.Context(), member); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, content(t, member), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForceLetsEverythingOfTheClusterGo(t *testing.T) {
	east := registered("east", "id", clusterv1alpha1.Push)
	east.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w", Finalizers: []string{workv1alpha1.ExecutionFinalizer}}}
	other := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "w", Finalizers: []string{workv1alpha1.ExecutionFinalizer}}}
	karmada := sideWith(t, "", &east, work, other, namespace("karmada-es-east"))
	// The API server deletes what a namespace holds.
	if err := karmada.api.Delete(t.Context(), work.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := karmada.delete(t.Context(), &east); err != nil {
		t.Fatal(err)
	}
	if err := karmada.release(t.Context(), &east); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Work karmada-es-west/w"}, content(t, karmada)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestSecondUpNamesRunningProcess(t *testing.T) {
	t.Parallel()
	pid, err := shared.processID(controlPlane)
	if err != nil {
		t.Fatal(err)
	}
	runProgram(t.Context(), nil, "karmada", "up", "--data-dir", shared.dir).mustFail(t, 1,
		shared.dir, "process "+strconv.Itoa(pid), "karmada down --data-dir "+shared.dir)
	// The first process is not affected.
	if err := shared.awaitClustersReady(t.Context(), member1, member2); err != nil {
		t.Error(err)
	}
}

func TestJoinErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name, context string
		kubeconfig    func(t *testing.T) string
		code          int
		wantStderr    []string
	}{
		"unknown context lists the existing contexts": {
			name: "other", context: "absent", code: 1, wantStderr: []string{`"absent"`, member1, member2, spareMember},
		},
		"missing kubeconfig is named": {
			name: "other", kubeconfig: func(*testing.T) string { return "/absent.config" }, code: 1, wantStderr: []string{"/absent.config"},
		},
		"unreachable member is named with its address": {
			name: "other", context: spareMember, kubeconfig: unreachableKubeconfig, code: 1,
			wantStderr: []string{`member "other"`, "https://127.0.0.1:1", "No response", "check that the API server is running"},
		},
		"cluster registered under another name": {
			name: "other", context: member1, code: 1, wantStderr: []string{`registered as Cluster "member1"`, "unjoin it first"},
		},
		"name used by another cluster": {
			name: member1, context: spareMember, code: 1, wantStderr: []string{"cluster name " + member1 + " has been registered"},
		},
		"cluster joined before": {
			name: member1, context: member1, code: 1, wantStderr: []string{`Cluster "member1" is this very cluster`, "nothing was changed"},
		},
		"control plane as a member": {
			name: "other", kubeconfig: func(*testing.T) string { return shared.karmadaConfig() }, code: 1, wantStderr: []string{"control plane itself"},
		},
		"default context has the name of the cluster": {
			name: member2, code: 1, wantStderr: []string{
				fmt.Sprintf("member %q is context %q of kubeconfig ", member2, member2), "(it has the name of the cluster): server https://",
				fmt.Sprintf("Cluster %q is this very cluster", member2),
			},
		},
		"invalid name is a usage error": {
			name: "Not_A_Name", context: spareMember, code: 2, wantStderr: []string{"Not_A_Name", "karmadactl join --help"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := shared.membersConfig()
			if test.kubeconfig != nil {
				path = test.kubeconfig(t)
			}
			args := []string{"join", test.name, "--cluster-kubeconfig", path}
			if test.context != "" {
				args = append(args, "--cluster-context", test.context)
			}
			shared.karmadactl(t.Context(), args...).mustFail(t, test.code, test.wantStderr...)
			if err := checkAbsent(t.Context(), shared.karmada, &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", "other")}); err != nil {
				t.Error(err)
			}
		})
	}
}

// unreachableKubeconfig returns a copy of the kubeconfig of the members with addresses on
// which no process listens.
func unreachableKubeconfig(t *testing.T) string {
	t.Helper()
	config, err := os.ReadFile(shared.membersConfig())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "unreachable.config")
	config = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAll(config, []byte("127.0.0.1:1"))
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnjoinRemovesAllObjects(t *testing.T) {
	t.Parallel()
	const guest = "guest"
	memberFlags := []string{"--cluster-kubeconfig", shared.membersConfig(), "--cluster-context", spareMember}
	shared.karmadactl(t.Context(), append([]string{"join", guest, "--cluster-region", "far"}, memberFlags...)...).mustSucceed(t)
	if err := shared.awaitClustersReady(t.Context(), guest); err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	createObjects(t, shared, newConfigMap(namespace, "settings", "ours"), selectAll(configMapSelector).propagationPolicy(namespace, guest))
	eventually(t, "the ConfigMap in the guest", func(ctx context.Context) error {
		return shared.members[spareMember].Get(ctx, client.ObjectKey{Namespace: namespace, Name: "settings"}, &corev1.ConfigMap{})
	})

	checkRejoinRepairsCredentials(t, guest, memberFlags)
	createObjects(t, shared, newConfigMap(namespace, "repaired", "ours"))
	eventually(t, "a ConfigMap delivered with the repaired credentials", func(ctx context.Context) error {
		return shared.members[spareMember].Get(ctx, client.ObjectKey{Namespace: namespace, Name: "repaired"}, &corev1.ConfigMap{})
	})

	// Without --cluster-context, the command uses the current context, which leads to
	// another cluster, because no context has the name of the guest.
	shared.karmadactl(t.Context(), "unjoin", guest, "--cluster-kubeconfig", shared.membersConfig()).mustFail(t, 1, "leads to another cluster")
	shared.karmadactl(t.Context(), append([]string{"unjoin", guest}, memberFlags...)...).mustSucceed(t)

	role := "karmada-controller-manager:karmada-" + guest
	remainingObjects := map[string]struct {
		side   client.Client
		object client.Object
	}{
		"Cluster":                   {shared.karmada, &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", guest)}},
		"execution namespace":       {shared.karmada, &corev1.Namespace{ObjectMeta: objectMeta("", clusterv1alpha1.ExecutionNamespacePrefix+guest)}},
		"credentials":               {shared.karmada, &corev1.Secret{ObjectMeta: objectMeta(clusterv1alpha1.NamespaceKarmadaCluster, guest)}},
		"impersonation credentials": {shared.karmada, &corev1.Secret{ObjectMeta: objectMeta(clusterv1alpha1.NamespaceKarmadaCluster, guest+"-impersonator")}},
		"propagated ConfigMap":      {shared.members[spareMember], &corev1.ConfigMap{ObjectMeta: objectMeta(namespace, "settings")}},
		"namespace of the accounts": {shared.members[spareMember], &corev1.Namespace{ObjectMeta: objectMeta("", clusterv1alpha1.NamespaceKarmadaCluster)}},
		"ClusterRole in the member": {shared.members[spareMember], &rbacv1.ClusterRole{ObjectMeta: objectMeta("", role)}},
		"ClusterRoleBinding in it":  {shared.members[spareMember], &rbacv1.ClusterRoleBinding{ObjectMeta: objectMeta("", role)}},
	}
	for description, remaining := range remainingObjects {
		eventually(t, fmt.Sprintf("no %s after unjoin", description), func(ctx context.Context) error {
			return checkAbsent(ctx, remaining.side, remaining.object)
		})
	}
	checkOtherControlPlaneKeepsAccess(t, guest, memberFlags)
}

// checkOtherControlPlaneKeepsAccess turns the objects of a joined member into those of another
// control plane. Then unjoin keeps them, and join rejects the member until they are released.
func checkOtherControlPlaneKeepsAccess(t *testing.T, cluster string, memberFlags []string) {
	t.Helper()
	run := func(command string) commandResult {
		return shared.karmadactl(t.Context(), append([]string{command, cluster}, memberFlags...)...)
	}
	run("join").mustSucceed(t)
	system := &corev1.Namespace{}
	if err := shared.karmada.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
		t.Fatal(err)
	}
	role := "karmada-controller-manager:karmada-" + cluster
	owned := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: objectMeta(clusterv1alpha1.NamespaceKarmadaCluster, "karmada-"+cluster)},
		&corev1.Secret{ObjectMeta: objectMeta(clusterv1alpha1.NamespaceKarmadaCluster, "karmada-"+cluster)},
		&rbacv1.ClusterRole{ObjectMeta: objectMeta("", role)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: objectMeta("", role)},
	}
	setOwner := func(owner string) {
		for _, object := range owned {
			if err := shared.members[spareMember].Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if got := object.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation]; owner != "" && got != string(system.UID) {
				t.Errorf("%T names the control plane %q, want %q", object, got, system.UID)
			}
			object.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation] = owner
			if err := shared.members[spareMember].Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	const other = "5d0b5a4c-53a2-4c92-9d68-1d3a5a1f9e0b"
	setOwner(other)
	run("unjoin").mustSucceed(t)
	run("join").mustFail(t, 1, `member "`+cluster+`" (https://`, "is already a member of the control plane with ID "+other, "this control plane has ID "+string(system.UID),
		"ServiceAccount karmada-cluster/karmada-"+cluster, "kubectl annotate ", "--namespace=karmada-cluster", "serviceaccount/karmada-"+cluster)
	setOwner("")
	run("join").mustSucceed(t)
	run("unjoin").mustSucceed(t)
	for _, object := range append(owned, &corev1.Namespace{ObjectMeta: objectMeta("", clusterv1alpha1.NamespaceKarmadaCluster)}) {
		eventually(t, fmt.Sprintf("no %T %s after unjoin", object, object.GetName()), func(ctx context.Context) error {
			return checkAbsent(ctx, shared.members[spareMember], object)
		})
	}
}

// checkRejoinRepairsCredentials revokes the token with which the control plane accesses a
// cluster, and repairs the credentials as docs/credentials.md describes.
func checkRejoinRepairsCredentials(t *testing.T, cluster string, memberFlags []string) {
	t.Helper()
	rejoin := func() commandResult {
		return shared.karmadactl(t.Context(), append([]string{"join", cluster}, memberFlags...)...)
	}
	rejoin().mustFail(t, 1, fmt.Sprintf("Cluster %q is this very cluster", cluster), "nothing was changed")
	account := &corev1.ServiceAccount{ObjectMeta: objectMeta(clusterv1alpha1.NamespaceKarmadaCluster, "karmada-"+cluster)}
	if err := shared.members[spareMember].Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	eventually(t, "rejected credentials of "+cluster, func(ctx context.Context) error {
		stored := &clusterv1alpha1.Cluster{}
		if err := shared.karmada.Get(ctx, client.ObjectKey{Name: cluster}, stored); err != nil {
			return err
		}
		valid := meta.FindStatusCondition(stored.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid)
		if valid == nil || valid.Reason != clusterv1alpha1.CredentialsRefusedReason {
			return fmt.Errorf("the condition is %v", valid)
		}
		return nil
	})
	repaired := rejoin()
	repaired.mustSucceed(t)
	for _, want := range []string{
		fmt.Sprintf("rejects the token in Secret karmada-cluster/%s\n", cluster),
		fmt.Sprintf("repaired the credentials of Cluster %q: stored a new token in Secret karmada-cluster/%s in the control plane\n", cluster, cluster),
	} {
		if !strings.Contains(repaired.stderr, want) {
			t.Errorf("stderr does not contain %q:\n%s", want, repaired.stderr)
		}
	}
	eventually(t, "accepted credentials of "+cluster, func(ctx context.Context) error {
		stored := &clusterv1alpha1.Cluster{}
		if err := shared.karmada.Get(ctx, client.ObjectKey{Name: cluster}, stored); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(stored.Status.Conditions, clusterv1alpha1.ClusterConditionCredentialsValid) {
			return fmt.Errorf("the conditions are %v", stored.Status.Conditions)
		}
		return nil
	})
	rejoin().mustFail(t, 1, "nothing was changed")
}

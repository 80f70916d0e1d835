package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

var registerCommandPattern = regexp.MustCompile(`^karmadactl (register 127\.0\.0\.1:\d+ --token ([a-z0-9]{6})\.[a-z0-9]{16} --discovery-token-ca-cert-hash sha256:[0-9a-f]{64})\n$`)

// TestRegisterAndUnregister runs the command that token create prints. It does not run in
// parallel, because other tests join the same member.
func TestRegisterAndUnregister(t *testing.T) {
	const edge = "edge"
	created := shared.karmadactl(t.Context(), "token", "create", "--print-register-command", "--ttl=1h", "--description", "for the edge")
	created.mustSucceed(t)
	command := registerCommandPattern.FindStringSubmatch(created.stdout)
	if command == nil {
		t.Fatalf("the register command is %q", created.stdout)
	}
	id := command[2]
	register := func(args ...string) commandResult {
		registerArgs := append(strings.Fields(command[1]), "--kubeconfig", shared.membersConfig(), "--context", spareMember)
		return runProgram(t.Context(), nil, "karmadactl", append(registerArgs, args...)...)
	}
	register("--cluster-name", member1).mustFail(t, 1, `Cluster "member1" exists`)
	dryRun := register("--cluster-name", edge, "--dry-run")
	dryRun.mustSucceed(t)
	if !strings.Contains(dryRun.stderr, "would create Deployment karmada-system/karmada-agent") {
		t.Errorf("the output of the dry run is %s", dryRun.stderr)
	}

	joined := register("--cluster-name", edge, "--cluster-region", "far")
	joined.mustSucceed(t)
	if want := fmt.Sprintf("cluster(%s) is joined successfully\n", edge); joined.stdout != want {
		t.Errorf("stdout is %q, want %q", joined.stdout, want)
	}
	if err := shared.awaitClustersReady(t.Context(), edge); err != nil {
		t.Fatal(err)
	}
	register("--cluster-name", "other").mustFail(t, 1, "[preflight] some fatal errors occurred", "Deployment karmada-system/karmada-agent exists")
	tokens := shared.karmadactl(t.Context(), "token", "list")
	if tokens.mustSucceed(t); !strings.Contains(tokens.stdout, id+".") {
		t.Errorf("the tokens are\n%s", tokens.stdout)
	}
	deleted := shared.karmadactl(t.Context(), "token", "delete", id)
	if deleted.mustSucceed(t); deleted.stdout != fmt.Sprintf("bootstrap token %q deleted\n", id) {
		t.Errorf("stdout is %q", deleted.stdout)
	}
	shared.karmadactl(t.Context(), "token", "delete", id).mustFail(t, 1, `err: secrets "bootstrap-token-`+id+`" not found`)
	shared.karmadactl(t.Context(), "token", "delete", "no-token").mustFail(t, 2, "given token didn't match pattern")
	namespace := newNamespace(t)
	settings := &corev1.ConfigMap{ObjectMeta: objectMeta(namespace, "settings")}
	createObjects(t, shared, newConfigMap(namespace, "settings", "ours"), selectAll(configMapSelector).propagationPolicy(namespace, edge))
	eventually(t, "the ConfigMap at the edge", func(ctx context.Context) error {
		return shared.members[spareMember].Get(ctx, client.ObjectKeyFromObject(settings), settings)
	})

	memberFlags := []string{"--cluster-kubeconfig", shared.membersConfig(), "--cluster-context", spareMember}
	shared.karmadactl(t.Context(), append([]string{"unjoin", edge}, memberFlags...)...).mustFail(t, 1, "use unregister")
	shared.karmadactl(t.Context(), append([]string{"unregister", member1}, memberFlags...)...).mustFail(t, 1, `is the agent of Cluster "edge"`)
	// The command must also accept the flags for the control plane.
	globalFlags := []string{"--kubeconfig", shared.karmadaConfig(), "--karmada-context", "karmada-apiserver"}
	unregistered := shared.karmadactl(t.Context(), append(append([]string{"unregister", edge}, memberFlags...), globalFlags...)...)
	if unregistered.mustSucceed(t); !strings.Contains(unregistered.stderr, fmt.Sprintf("member %q is context %q of kubeconfig %s", edge, spareMember, shared.membersConfig())) {
		t.Errorf("stderr does not name the member:\n%s", unregistered.stderr)
	}
	for description, remaining := range map[string]struct {
		side   client.Client
		object client.Object
	}{
		"Cluster":                   {shared.karmada, &clusterv1alpha1.Cluster{ObjectMeta: objectMeta("", edge)}},
		"execution namespace":       {shared.karmada, &corev1.Namespace{ObjectMeta: objectMeta("", clusterv1alpha1.ExecutionNamespacePrefix+edge)}},
		"rights":                    {shared.karmada, &rbacv1.ClusterRole{ObjectMeta: objectMeta("", "system:karmada:"+edge+":agent")}},
		"propagated ConfigMap":      {shared.members[spareMember], settings},
		"agent":                     {shared.members[spareMember], &appsv1.Deployment{ObjectMeta: objectMeta("karmada-system", "karmada-agent")}},
		"credentials of the agent":  {shared.members[spareMember], &corev1.Secret{ObjectMeta: objectMeta("karmada-system", "karmada-kubeconfig")}},
		"ClusterRole in the member": {shared.members[spareMember], &rbacv1.ClusterRole{ObjectMeta: objectMeta("", "karmada-agent")}},
	} {
		eventually(t, fmt.Sprintf("no %s after unregister", description), func(ctx context.Context) error {
			return checkAbsent(ctx, remaining.side, remaining.object)
		})
	}
}

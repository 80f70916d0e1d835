package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newProgramDeployment returns a Deployment whose Pods run as processes in a simulated
// member. They run the scheduler, which waits in the member for a Lease that it cannot get.
// file is the manifest of the Deployment.
func newProgramDeployment(t *testing.T, namespace string) (file string, template *appsv1.Deployment) {
	t.Helper()
	template = newDeployment(namespace, "program", 1)
	template.APIVersion, template.Kind = "apps/v1", "Deployment"
	template.Spec.Template.Spec.Containers[0].Image = "karmada-scheduler:latest"
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "program.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, template
}

// runKarmadactl runs karmadactl with a namespace.
func runKarmadactl(t *testing.T, namespace string, args ...string) commandResult {
	t.Helper()
	// Insert the flag before --, because the command of a container follows.
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	return shared.karmadactl(t.Context(), slices.Insert(args, at, "-n", namespace)...)
}

// checkOutput requires that a command succeeded and that stdout contains all parts.
func checkOutput(t *testing.T, result commandResult, parts ...string) {
	t.Helper()
	result.mustSucceed(t)
	if !containsAll(result.stdout, parts) {
		t.Errorf("stdout does not contain all of %q:\n%s", parts, result.stdout)
	}
}

// awaitDeployment waits until the Deployment of a template in a member fulfills a
// condition.
func awaitDeployment(t *testing.T, member string, template *appsv1.Deployment, description string, isExpected func(*appsv1.Deployment) bool) {
	t.Helper()
	eventually(t, description+" in "+member, func(ctx context.Context) error {
		found := &appsv1.Deployment{}
		if err := shared.members[member].Get(ctx, client.ObjectKeyFromObject(template), found); err != nil {
			return err
		}
		if !isExpected(found) {
			return fmt.Errorf("the Deployment has labels %v and %d replicas", found.Labels, *found.Spec.Replicas)
		}
		return nil
	})
}

func TestKubectlCommands(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	file, template := newProgramDeployment(t, namespace)
	checkOutput(t, runKarmadactl(t, namespace, "apply", "-f", file, "-C", member1),
		"deployment.apps/program created\n", "propagationpolicy.policy.karmada.io/program-", " created\n")

	eventuallyWithin(t, startTimeout, "the log of a program in "+member1, func(context.Context) error {
		if ended := runKarmadactl(t, namespace, "logs", "deployment/program", "--cluster", member1); ended.code != 0 || ended.stdout == "" {
			return fmt.Errorf("exit code %d: %s", ended.code, ended.stderr)
		}
		return nil
	})
	checkOutput(t, runKarmadactl(t, namespace, "exec", "deployment/program", "-s", "members", "--cluster", member1, "--", "karmada-scheduler", "version"), "karmada-scheduler")
	ended := runKarmadactl(t, namespace, "exec", "deployment/program", "-s", "members", "--cluster", member1, "--", "/bin/karmada-scheduler", "--no-such-flag")
	if ended.code != 2 || !strings.Contains(ended.stderr, "--no-such-flag") {
		t.Errorf("exec exited with %d, want 2; stdout %q\n%s", ended.code, ended.stdout, ended.stderr)
	}
	shellExec := runKarmadactl(t, namespace, "exec", "deployment/program", "-s", "members", "--cluster", member1, "--", "/bin/sh", "-c", "echo from the machine")
	if shellExec.code == 0 || shellExec.stdout != "" || !strings.Contains(shellExec.stderr, "no other command runs") {
		t.Errorf("the shell exited with %d; stdout %q\n%s", shellExec.code, shellExec.stdout, shellExec.stderr)
	}
	checkOutput(t, runKarmadactl(t, namespace, "describe", "deployment", "program", "-s", "members", "-C", member1), "karmada.io/managed=true")
	checkOutput(t, runKarmadactl(t, namespace, "describe", "deployment", "program"), "ApplyPolicySucceed", member1+":1")
	fromAllClusters := runKarmadactl(t, namespace, "get", "deployment", "program", "-s", "all", "-C", member1+","+member2, "-o", "name")
	checkOutput(t, fromAllClusters, "deployment.apps/program\ndeployment.apps/program\n")
	if fromAllClusters.stderr != "" {
		t.Errorf("%s has no Deployment by its policy, but stderr reports it:\n%s", member2, fromAllClusters.stderr)
	}
	checkOutput(t, runKarmadactl(t, namespace, "get", "rb", "-o", "wide"),
		"SCHEDULED-REASON", "FULLYAPPLIED-REASON", "CLUSTERS", "Success", `[{"name":"`+member1+`","replicas":1}]`)

	checkOutput(t, runKarmadactl(t, namespace, "label", "deployment", "program", "tier=gold"), "deployment.apps/program labeled\n")
	checkOutput(t, runKarmadactl(t, namespace, "patch", "deployment", "program", "-p", `{"spec":{"replicas":0}}`), "deployment.apps/program patched\n")
	hasChange := func(found *appsv1.Deployment) bool {
		return found.Labels["tier"] == "gold" && *found.Spec.Replicas == 0
	}
	awaitDeployment(t, member1, template, "label and replicas", hasChange)

	checkOutput(t, runKarmadactl(t, namespace, "apply", "-f", file, "-C", member1+","+member2), "policy.karmada.io/program-", " configured\n")
	awaitDeployment(t, member2, template, "the Deployment", func(*appsv1.Deployment) bool { return true })
	list := struct{ Items []any }{}
	allDeployments := runKarmadactl(t, namespace, "get", "deployments", "-s", "members", "-C", member1+","+member2, "-o", "json")
	allDeployments.mustSucceed(t)
	if err := json.Unmarshal([]byte(allDeployments.stdout), &list); err != nil || len(list.Items) != 2 {
		t.Errorf("%d objects, want one list of 2: %v", len(list.Items), err)
	}

	checkOutput(t, shared.karmadactl(t.Context(), "top", "node", "--clusters", member1+","+member2), "CPU(cores)", member1, member2, "node-1")

	checkOutput(t, runKarmadactl(t, namespace, "delete", "deployment", "program"), `deployment.apps "program" deleted`)
	for _, name := range []string{member1, member2} {
		awaitRemoval(t, name, template)
	}
}

func TestKubectlCommandErrors(t *testing.T) {
	t.Parallel()
	shared.karmadactl(t.Context(), "logs", "web", "-C", "nowhere").mustFail(t, 1, `clusters.cluster.karmada.io "nowhere" not found`, member1)
	shared.karmadactl(t.Context(), "describe", "nodes", "-s", "members").mustFail(t, 2, "--cluster")
	shared.karmadactl(t.Context(), "taint", "clusters", "nowhere", "a:NoSchedule").mustFail(t, 1, `clusters.cluster.karmada.io "nowhere" not found`)
	shared.karmadactl(t.Context(), "get", "namespace", "nowhere", "-s", "all").mustFail(t, 1, `namespaces "nowhere" not found`)
	shared.karmadactl(t.Context(), "--as", "lena", "get", "pods", "-C", member1).mustFail(t, 1, `User "lena"`)
	shared.karmadactl(t.Context(), "--context", "moon", "token", "list").mustFail(t, 1, `no context "moon"`, "karmada-apiserver")
	if !strings.Contains(shared.karmadactl(t.Context(), "explain", "node.spec", "-s", "members", "--cluster", member1).stdout, "providerID") {
		t.Error("explain does not show the fields of a kind of the member")
	}
}

func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"karmada", "karmadactl", "kubectl-karmada"} {
		for _, args := range []string{"frob", "frob --help", "help frob"} {
			runProgram(t.Context(), nil, program, strings.Fields(args)...).mustFail(t, 1, `error: unknown command "frob" for "`)
		}
	}
	runProgram(t.Context(), nil, "karmada", "stauts").mustFail(t, 1, "did you mean status?")
	runProgram(t.Context(), nil, "karmadactl", "token", "crate").mustFail(t, 1, "did you mean create?")
}

func TestMachineReadableOutput(t *testing.T) {
	t.Parallel()
	found := struct {
		Kubeconfig string
		Components []struct{ Kind, Name, State string }
	}{}
	ended := runProgram(t.Context(), nil, "karmada", "status", "--data-dir", shared.dir, "-o", "json")
	ended.mustSucceed(t)
	if err := json.Unmarshal([]byte(ended.stdout), &found); err != nil || found.Kubeconfig != shared.karmadaConfig() || len(found.Components) < 3 {
		t.Errorf("status: %v in\n%s", err, ended.stdout)
	}
	checkOutput(t, runProgram(t.Context(), nil, "karmada", "status", "--data-dir", shared.dir, "-o", "name"), "controlplane/karmada\n", "cluster/"+member1+"\n")

	created := shared.karmadactl(t.Context(), "token", "create", "--ttl", "10m", "--description", "for a program")
	created.mustSucceed(t)
	id, _, _ := strings.Cut(created.stdout, ".")
	checkOutput(t, shared.karmadactl(t.Context(), "token", "list", "-o", "name"), id+"\n")
	checkOutput(t, shared.karmadactl(t.Context(), "token", "list", "-o", "json"), `"description": "for a program"`)
	shared.karmadactl(t.Context(), "token", "delete", id).mustSucceed(t)
	checkOutput(t, shared.karmadactl(t.Context(), "get", "clusters", "-o", "wide"), "PROXY-URL", "TAINTS", "<none>")
}

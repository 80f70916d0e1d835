package integration

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	agentdomain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/testenv"
)

// promptly is how long a Work may take once nothing is in its way. It is a second, and
// the rest is for a machine that has other things to do: a client that sleeps between
// two tries would take half a minute.
const promptly = 20 * time.Second

// pulled is a cluster of its own whose agent has nothing but the rights of agents
// in the control plane.
type pulled struct {
	env    *testenv.Env
	name   string
	member *testenv.Member
	// kubeconfig leads to the control plane, local to the member.
	kubeconfig, local string
}

// newPulled starts a member and gives its agent to be its rights. Both go with the
// test.
func newPulled(t *testing.T, env *testenv.Env, name string) *pulled {
	t.Helper()
	p := startPulled(t, env, name)
	p.write(t, env.Config.Host, time.Hour)
	p.grantRights(t)
	t.Cleanup(func() { removeCluster(t, env, name) })
	return p
}

// startPulled starts a member whose agent has no credentials yet.
func startPulled(t *testing.T, env *testenv.Env, name string) *pulled {
	t.Helper()
	dir := t.TempDir()
	started, err := testenv.StartMember(t.Context(), filepath.Join(dir, "member"), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	p := &pulled{env: env, name: name, member: started, kubeconfig: filepath.Join(dir, "karmada.config"), local: filepath.Join(dir, "member.config")}
	writeTokenKubeconfig(t, p.local, started)
	return p
}

// grantRights gives the agent what agents may do, and nothing else.
func (p *pulled) grantRights(t *testing.T) {
	t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(p.name)}}
	if err := p.env.Karmada.Create(t.Context(), space); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, right := range agentdomain.RBACObjects(p.name, clusterv1alpha1.NamespaceKarmadaCluster) {
		object, ok := right.(client.Object)
		if !ok {
			t.Fatalf("%T is no object", right)
		}
		if err := p.env.Karmada.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		cleanUp(t, p.env, object)
	}
}

// write writes the kubeconfig of the agent, with a certificate that is valid for a
// while from now on.
func (p *pulled) write(t *testing.T, server string, life time.Duration) {
	t.Helper()
	certs := p.env.Certificates()
	ca, err := certs.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	issued := "agent-" + uuid.NewString()
	if _, err := ca.EnsureLeaf(issued, pki.Leaf{CommonName: agentdomain.User(p.name), Organizations: []string{agentdomain.Group}, Lifetime: life}); err != nil {
		t.Fatal(err)
	}
	if err := pki.WriteKubeconfig(p.kubeconfig, pki.KubeconfigContext{
		Name: "karmada-apiserver", User: p.name, Server: server, CA: ca.PEM(),
		ClientCertFile: certs.CertFile(issued), ClientKeyFile: certs.KeyFile(issued),
	}); err != nil {
		t.Fatal(err)
	}
}

func writeTokenKubeconfig(t *testing.T, path string, to *testenv.Member) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: to.Config.Host, CertificateAuthorityData: to.Config.CAData}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: to.Token}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

// flags are those of an agent that hurries, as a test does.
func (p *pulled) flags(more ...string) []string {
	if !slices.ContainsFunc(more, func(flag string) bool { return strings.HasPrefix(flag, "--report-secrets=") }) {
		// Members have nobody who issues tokens.
		more = append(more, "--report-secrets=None")
	}
	return append([]string{
		"--cluster-name=" + p.name, "--karmada-kubeconfig=" + p.kubeconfig, "--kubeconfig=" + p.local,
		"--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--cluster-status-update-frequency=1s", "--cluster-success-threshold=0s", "--cluster-lease-duration=4s",
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
	}, more...)
}

// agentLife is one life of an agent in this process.
type agentLife struct {
	end   context.CancelFunc
	ended chan struct{}
	err   error
}

// stop ends the agent and tells how it ended.
func (l *agentLife) stop(t *testing.T) error {
	t.Helper()
	l.end()
	select {
	case <-l.ended:
		return l.err
	case <-time.After(testenv.Patience):
		t.Fatalf("the agent runs on %s after its end", testenv.Patience)
		return nil
	}
}

// run runs an agent in this process. It ends with the test at the latest.
func (p *pulled) run(t *testing.T, more ...string) *agentLife {
	t.Helper()
	set, parsed := gates.New(), pflag.NewFlagSet("agent", pflag.ContinueOnError)
	o := agent.Default(set)
	o.AddFlags(parsed)
	if err := errors.Join(parsed.Parse(p.flags(more...)), o.Validate()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &agentLife{end: end, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		l.err = o.Run(ctx)
	}()
	t.Cleanup(func() {
		if err := l.stop(t); err != nil && !t.Failed() {
			t.Logf("the agent ended with %v", err)
		}
	})
	return l
}

func (p *pulled) cluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
}

// election is the Lease that the replicas of the agent compete for.
func (p *pulled) election() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: agentdomain.LeaderLeasePrefix + p.name}}
}

// id is the identity of the member.
func (p *pulled) id(t *testing.T) string {
	t.Helper()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := p.member.Client.Get(t.Context(), client.ObjectKeyFromObject(system), system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}

func (p *pulled) awaitReady(t *testing.T) *clusterv1alpha1.Cluster {
	t.Helper()
	return await(t, p.env.Karmada, p.cluster(), func(c *clusterv1alpha1.Cluster) error {
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
			return fmt.Errorf("conditions %+v", c.Status.Conditions)
		}
		return same("taints", 0, len(c.Spec.Taints))
	})
}

// removeCluster deletes a Cluster. Where no agent is left to let the Works go, the
// administrator does.
func removeCluster(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	gone := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(env.Karmada.Delete(context.WithoutCancel(t.Context()), gone)); err != nil {
		t.Errorf("deleting Cluster %s: %v", name, err)
	}
	testenv.Eventually(t, "end of Cluster "+name, func(ctx context.Context) error {
		works := &workv1alpha1.WorkList{}
		if err := env.Karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(name))); err != nil {
			return err
		}
		for i := range works.Items {
			free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := client.IgnoreNotFound(env.Karmada.Patch(ctx, &works.Items[i], free)); err != nil {
				return err
			}
		}
		return absent(ctx, env.Karmada, gone)
	})
}

// deploy propagates a Deployment to the member alone, and waits until it is there.
func (p *pulled) deploy(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	template := deployment(namespace, name, 2)
	p.env.Create(t, policyFor(t, on(p.name), template), template)
	return await(t, p.member.Client, deployment(namespace, name, 2), replicas(2))
}

// scale changes the replicas of a template and tells how long the member took to
// have them.
func (p *pulled) scale(t *testing.T, template *appsv1.Deployment, to int32) time.Duration {
	t.Helper()
	testenv.Update(t, p.env.Karmada, deployment(template.Namespace, template.Name, 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = to })
	began := clock.now()
	await(t, p.member.Client, deployment(template.Namespace, template.Name, 0), replicas(to))
	return clock.since(began)
}

func TestAnAgentServesItsClusterWithItsOwnRightsOnly(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-serves")
	described := []string{"--cluster-provider=metal", "--cluster-region=north", "--cluster-zones=a,b", "--proxy-server-address=http://proxy:3128", "--cluster-api-endpoint=https://outside:6443"}
	running := p.run(t, described...)
	ready := p.awaitReady(t)
	want := clusterv1alpha1.ClusterSpec{
		ID: p.id(t), SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://outside:6443", ProxyURL: "http://proxy:3128",
		Provider: "metal", Region: "north", Zones: []string{"a", "b"},
		ResourceModels: ready.Spec.ResourceModels, Taints: ready.Spec.Taints, Zone: ready.Spec.Zone,
	}
	if diff := cmp.Diff(want, ready.Spec); diff != "" {
		t.Errorf("Cluster (-want +got):\n%s", diff)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: p.name}}
	await(t, env.Karmada, lease, func(l *coordinationv1.Lease) error {
		return errors.Join(same("holder", p.name, *l.Spec.HolderIdentity), same("owner", ready.UID, l.OwnerReferences[0].UID))
	})
	await(t, env.Karmada, p.election(), func(l *coordinationv1.Lease) error {
		if len(l.OwnerReferences) != 1 {
			return fmt.Errorf("owners %+v", l.OwnerReferences)
		}
		return same("owner of the election", ready.UID, l.OwnerReferences[0].UID)
	})

	namespace := env.Namespace(t)
	template := p.deploy(t, namespace, "web")
	testenv.Eventually(t, "status in "+p.name, func(ctx context.Context) error {
		object := deployment(namespace, "web", 0)
		if err := p.member.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.Status = appsv1.DeploymentStatus{ObservedGeneration: object.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
		return p.member.Client.Status().Update(ctx, object)
	})
	await(t, env.Karmada, deployment(namespace, "web", 0), func(d *appsv1.Deployment) error { return same("ready", int32(2), d.Status.ReadyReplicas) })
	p.scale(t, template, 3)
	testenv.Update(t, p.member.Client, deployment(namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 })
	await(t, p.member.Client, deployment(namespace, "web", 0), replicas(3))

	undisturbed(t, "nothing is written after a start", func() error {
		// What was not reported yet is.
		awaitNoWrites(t, env, p.member)
		if err := running.stop(t); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
		awaitNoWrites(t, env, p.member)
		before, began := writes(t, env, p.member), time.Now()
		running = p.run(t, described...)
		await(t, env.Karmada, lease, func(l *coordinationv1.Lease) error {
			if l.Spec.RenewTime.Before(&metav1.MicroTime{Time: began}) {
				return fmt.Errorf("renewed last at %s", l.Spec.RenewTime)
			}
			return nil
		})
		return holdsStill(t, env, before, p.member)
	})

	deleteObject(t, env.Karmada, deployment(namespace, "web", 0))
	awaitGone(t, p.member.Client, deployment(namespace, "web", 0))
}

func TestAnAgentOutlivesItsControlPlane(t *testing.T) {
	env := alone(t)
	for name, c := range map[string]struct {
		lose func(*testing.T, *gate) (back func())
	}{
		"that hangs": {func(_ *testing.T, g *gate) func() {
			g.set(true)
			return func() { g.set(false) }
		}},
		"that refuses connections": {func(t *testing.T, g *gate) func() {
			at := g.listener.Addr().String()
			g.end()
			return func() { newGateOn(t, at, env.Config.Host) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPulled(t, env, "pull-outlives-"+strings.ToLower(strings.Fields(name)[1]))
			g := newGate(t, env.Config.Host)
			p.write(t, g.URL(), time.Hour)
			running := p.run(t)
			p.awaitReady(t)
			template := p.deploy(t, env.Namespace(t), "web")

			// Longer than the agent leads without an answer.
			back := c.lose(t, g)
			testenv.Update(t, env.Karmada, deployment(template.Namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
			await(t, env.Karmada, workOf(t, p.name, template), func(w *workv1alpha1.Work) error {
				manifest, err := manifestOf(w)
				if err != nil {
					return err
				}
				if !strings.Contains(fmt.Sprint(manifest.Object["spec"]), "replicas:5") {
					return errors.New("the Work has the old replicas")
				}
				return nil
			})
			testenv.Holds(t, "the agent runs without its control plane", 6*time.Second, func(ctx context.Context) error {
				select {
				case <-running.ended:
					return fmt.Errorf("it ended with %w", running.err)
				default:
				}
				return p.holds(ctx, template, 2)
			})
			back()
			began := clock.now()
			await(t, p.member.Client, deployment(template.Namespace, "web", 0), replicas(5))
			if took := clock.since(began); took > promptly {
				t.Errorf("the Work was applied %s after the control plane was back", took)
			}
		})
	}
}

// holds tells how a member has other replicas of a Deployment.
func (p *pulled) holds(ctx context.Context, template *appsv1.Deployment, want int32) error {
	object := deployment(template.Namespace, template.Name, 0)
	if err := p.member.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	return replicas(want)(object)
}

func TestAnAgentWaitsForBothSides(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-waits")
	g := newGate(t, env.Config.Host)
	at := g.listener.Addr().String()
	p.write(t, g.URL(), time.Hour)
	g.end()
	p.member.Stop()
	running := p.run(t)
	testenv.Holds(t, "the agent waits", time.Second, func(context.Context) error {
		select {
		case <-running.ended:
			return fmt.Errorf("it ended with %w", running.err)
		default:
			return nil
		}
	})
	newGateOn(t, at, env.Config.Host)
	if err := p.member.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.awaitReady(t)
}

func TestAnAgentGoesOnWithCredentialsThatAreRenewed(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-renews")
	running := p.run(t)
	p.awaitReady(t)
	template := p.deploy(t, env.Namespace(t), "web")
	p.write(t, env.Config.Host, time.Second)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: p.name}}
	testenv.Eventually(t, "the control plane refuses the agent", func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if silent := time.Since(lease.Spec.RenewTime.Time); silent < 3*time.Second || clock.disturbed() {
			return fmt.Errorf("the agent was heard of %s ago", silent)
		}
		return nil
	})
	testenv.Update(t, env.Karmada, deployment(template.Namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 4 })
	testenv.Holds(t, "what the agent does not hear of", quiet, func(ctx context.Context) error { return p.holds(ctx, template, 2) })
	p.write(t, env.Config.Host, time.Hour)
	await(t, p.member.Client, deployment(template.Namespace, "web", 0), replicas(4))
	select {
	case <-running.ended:
		t.Errorf("the agent ended with %v", running.err)
	default:
	}
	if took := p.scale(t, template, 6); took > promptly {
		t.Errorf("with new credentials a Work takes %s", took)
	}
}

func TestAClusterThatIsDeletedIsLeftByItsAgent(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-leaves")
	running := p.run(t)
	before := p.awaitReady(t)
	namespace := env.Namespace(t)
	p.deploy(t, namespace, "web")
	deleteObject(t, env.Karmada, p.cluster())
	awaitGone(t, p.member.Client, deployment(namespace, "web", 0))
	awaitGone(t, env.Karmada, p.cluster())
	testenv.Holds(t, "the Cluster stays away", settled, func(ctx context.Context) error {
		select {
		case <-running.ended:
			return fmt.Errorf("the agent ended with %w", running.err)
		default:
			return absent(ctx, env.Karmada, p.cluster())
		}
	})
	if err := running.stop(t); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	awaitGone(t, env.Karmada, p.election())
	// The rights in the execution namespace went with it.
	awaitGone(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(p.name)}})
	p.grantRights(t)
	p.run(t)
	if after := p.awaitReady(t); after.UID == before.UID {
		t.Error("the Cluster is the one that was deleted")
	}
}

func TestAnAgentReportsItsSecrets(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-reports")
	ctx, cancel := context.WithCancel(t.Context())
	var issuing sync.WaitGroup
	issuing.Go(func() { p.issueTokens(ctx) })
	t.Cleanup(func() { cancel(); issuing.Wait() })
	p.run(t, "--report-secrets=KubeCredentials,KubeImpersonator")
	registered := p.awaitReady(t)
	space := clusterv1alpha1.NamespaceKarmadaCluster
	reference := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: space, Name: name}
	}
	if diff := cmp.Diff([]*clusterv1alpha1.LocalSecretReference{reference(p.name), reference(p.name + "-impersonator")},
		[]*clusterv1alpha1.LocalSecretReference{registered.Spec.SecretRef, registered.Spec.ImpersonatorSecretRef}); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	for name, keys := range map[string][]string{p.name: {"caBundle", "token"}, p.name + "-impersonator": {"token"}} {
		secret := await(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}}, exists)
		for _, key := range keys {
			if len(secret.Data[key]) == 0 {
				t.Errorf("Secret %s has no %s", name, key)
			}
		}
		if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != registered.UID {
			t.Errorf("owners of Secret %s: %+v", name, secret.OwnerReferences)
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-" + p.name}}
	await(t, p.member.Client, role, exists)
}

// issueTokens does in the member what kube-controller-manager does: it gives the
// Secrets of service accounts their tokens.
func (p *pulled) issueTokens(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		secrets := &corev1.SecretList{}
		if p.member.Client.List(ctx, secrets, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)) != nil {
			continue
		}
		for i := range secrets.Items {
			secret, account := &secrets.Items[i], &corev1.ServiceAccount{}
			key := client.ObjectKey{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]}
			if len(secret.Data) > 0 || p.member.Client.Get(ctx, key, account) != nil {
				continue
			}
			secret.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
			secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(p.member.Token)}
			_ = p.member.Client.Update(ctx, secret)
		}
	}
}

// launch runs an agent in a process of its own, which may be killed, with more
// variables in its environment.
func (p *pulled) launch(t *testing.T, variables []string, more ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(executable, p.flags(more...)...)
	program.Env = slices.Concat(os.Environ(), []string{programVariable + "=" + programs.Agent}, variables)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	return program
}

// inPod is the environment of the containers of a Pod.
func inPod(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	says := base64.RawURLEncoding.EncodeToString([]byte(`{"kubernetes.io":{"pod":{"name":"karmada-agent-0","uid":"` + uuid.NewString() + `"}}}`))
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("e30."+says+".c2ln"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{flags.ServiceAccountVariable + "=" + dir}
}

func TestAnAgentThatIsKilledLosesNothing(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-killed")
	pod := inPod(t)
	// Nobody waits for the Lease to be over: that would be too late.
	lasting := []string{"--leader-elect-lease-duration=5m", "--leader-elect-renew-deadline=10s"}
	killed := p.launch(t, pod, lasting...)
	p.awaitReady(t)
	namespace := env.Namespace(t)
	template := p.deploy(t, namespace, "web")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	testenv.Update(t, env.Karmada, deployment(namespace, "web", 0), func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	kept := configMap(namespace, "kept")
	env.Create(t, policyFor(t, on(p.name), kept), kept)
	p.launch(t, pod, lasting...)
	began := time.Now()
	await(t, p.member.Client, template, replicas(5))
	t.Logf("the next one did the work of the one that was killed after %s", time.Since(began))
	await(t, p.member.Client, configMap(namespace, "kept"), exists)
}

func TestAnAgentLosesNothingWhenItsConnectionsAreReset(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-resets")
	g := newGate(t, env.Config.Host)
	p.write(t, g.URL(), time.Hour)
	running := p.run(t)
	p.awaitReady(t)
	template := p.deploy(t, env.Namespace(t), "web")
	for round := range 8 {
		g.hangUp()
		if took := p.scale(t, template, int32(3+round)); took > promptly {
			t.Errorf("after reset %d a Work took %s", round, took)
		}
	}
	select {
	case <-running.ended:
		t.Errorf("the agent ended with %v", running.err)
	default:
	}
}

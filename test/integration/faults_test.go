package integration

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/testenv"
)

// Names of the clusters that things happen to; member1 is the one to which nothing
// happens, unless it happens to all of them.
const (
	pushed     = "fault-push"
	pulledName = "fault-pull"
	ofAll      = "*"
)

const (
	// usual is how long a change may take on its way to a cluster that is well, and
	// afterwards how long what has waited may take when the fault is over. Both leave a
	// busy machine its time; what it was is in the log. Who waits for another cluster,
	// or sleeps between two tries, waits for half a minute.
	usual, afterwards = 20 * time.Second, 20 * time.Second
)

// world is three clusters with a workload in all of them: member1, one that is
// reached through a gate, and one whose agent reaches the control plane through
// another.
type world struct {
	env *testenv.Env
	t   *testing.T
	// namespace holds everything, round is how often it has changed.
	namespace string
	round     int32
	push      *testenv.Member
	// account is whose token the control plane has for push.
	account *corev1.ServiceAccount
	between *gate
	pull    *pulled
	outside *gate
	// inner is the one between the control plane and its components.
	inner *gate
	agent *agentLife
	// strangers are objects of others in the way of a template, as they were.
	strangers map[string]*corev1.ConfigMap
}

func newWorld(t *testing.T, env *testenv.Env) *world {
	t.Helper()
	inner := newGate(t, env.Config.Host)
	env.Through = inner.URL()
	withSettings(t, env, "", func(s *programs.Settings) {
		impatient(time.Second, time.Second)(s)
		s.Controllers.Monitor.Period = 200 * time.Millisecond
		s.Controllers.Monitor.Grace.Period, s.Controllers.Monitor.Grace.Startup = 6*time.Second, 6*time.Second
	})
	t.Cleanup(func() { env.Through = "" })
	w := &world{env: env, t: t, inner: inner, namespace: env.Namespace(t), strangers: map[string]*corev1.ConfigMap{}}
	var err error
	if w.push, err = testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), pushed), pushed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.push.Stop)
	w.account, w.push.Token, _ = grant(t, w.push, "first")
	w.between = newGate(t, w.push.Config.Host)
	if err := env.Register(t.Context(), pushed, w.push); err != nil {
		t.Fatal(err)
	}
	removeWithTest(t, env, pushed)
	testenv.Update(t, env.Karmada, clusterNamed(pushed), func(c *clusterv1alpha1.Cluster) {
		c.Spec.APIEndpoint, c.Spec.InsecureSkipTLSVerification = w.between.URL(), true
	})
	w.pull = newPulled(t, env, pulledName)
	w.outside = newGate(t, env.Config.Host)
	w.pull.write(t, w.outside.URL(), time.Hour)
	w.agent = w.pull.run(t)
	for _, name := range w.clusters() {
		await(t, env.Karmada, clusterNamed(name), all(readyIs(metav1.ConditionTrue), taintedBy()))
	}
	w.deploy()
	return w
}

func (w *world) clusters() []string { return []string{member1, pushed, pulledName} }

// others are the clusters to which none of the faults happens.
func (w *world) others(faults []fault) []string {
	return slices.DeleteFunc(w.clusters(), func(name string) bool {
		return slices.ContainsFunc(faults, func(f fault) bool { return f.hits == name || f.hits == ofAll })
	})
}

// inside reads and writes a cluster directly, whatever happens on the way there.
func (w *world) inside(cluster string) client.Client {
	switch cluster {
	case pushed:
		return w.push.Client
	case pulledName:
		return w.pull.member.Client
	default:
		return member(w.env, cluster)
	}
}

func (w *world) kept() *corev1.ConfigMap     { return configMap(w.namespace, "kept") }
func (w *world) web() *appsv1.Deployment     { return deployment(w.namespace, "web", 1) }
func (w *world) stranger() *corev1.ConfigMap { return configMap(w.namespace, "stranger") }
func (w *world) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func (w *world) named(what string) *corev1.ConfigMap {
	return configMap(w.namespace, fmt.Sprintf("%s-%d", what, w.round))
}

func (w *world) color() string { return fmt.Sprintf("round-%d", w.round) }

// deploy sends the workload to all clusters. One of its objects is another owner's
// already.
func (w *world) deploy() {
	policy := policyFor(w.t, on(w.clusters()...), w.kept(), w.web(), w.service(), w.stranger())
	policy.Name = "everything"
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{
		{APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "v1", Kind: "Service"}, {APIVersion: "apps/v1", Kind: "Deployment"},
	}
	w.env.Create(w.t, policy, w.kept(), w.web(), w.service())
	for _, name := range w.clusters() {
		for _, object := range []client.Object{w.kept(), w.web(), w.service()} {
			await(w.t, w.inside(name), object, exists)
		}
		w.strangers[name] = w.stranger()
		if err := w.inside(name).Create(w.t.Context(), w.strangers[name]); err != nil {
			w.t.Fatal(err)
		}
	}
	w.env.Create(w.t, w.stranger())
	await(w.t, w.env.Karmada, bindingOf(w.t, w.stranger()), func(b *workv1alpha2.ResourceBinding) error {
		if !meta.IsStatusConditionFalse(b.Status.Conditions, workv1alpha2.FullyApplied) {
			return fmt.Errorf("conditions %+v", b.Status.Conditions)
		}
		return nil
	})
	for _, name := range w.clusters() {
		w.rollOut(name)
	}
	w.readyIn(3)
}

// begin starts a round: there is something new that is about to go.
func (w *world) begin() {
	w.round++
	w.env.Create(w.t, w.named("going"))
	for _, name := range w.clusters() {
		await(w.t, w.inside(name), w.named("going"), exists)
	}
}

// change does what users do.
func (w *world) change() {
	testenv.Update(w.t, w.env.Karmada, w.kept(), func(c *corev1.ConfigMap) { c.Data["color"] = w.color() })
	testenv.Update(w.t, w.env.Karmada, w.web(), func(d *appsv1.Deployment) { *d.Spec.Replicas = 1 + w.round })
	deleteObject(w.t, w.env.Karmada, w.named("going"))
	w.env.Create(w.t, w.named("coming"))
}

// arrives waits until the changes are in a cluster, and tells how long that took.
func (w *world) arrives(cluster string) time.Duration {
	w.t.Helper()
	arrived := false
	defer func() {
		if !arrived {
			w.t.Logf("what does not arrive is for %s", cluster)
		}
	}()
	began, side := clock.now(), w.inside(cluster)
	await(w.t, side, w.kept(), hasColor(w.color()))
	await(w.t, side, w.web(), replicas(1+w.round))
	await(w.t, side, w.named("coming"), exists)
	awaitGone(w.t, side, w.named("going"))
	arrived = true
	return clock.since(began)
}

// rollOut makes all replicas ready in a cluster.
func (w *world) rollOut(cluster string) {
	w.t.Helper()
	testenv.Eventually(w.t, "status in "+cluster, func(ctx context.Context) error {
		d := w.web()
		if err := w.inside(cluster).Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		return w.inside(cluster).Status().Update(ctx, d)
	})
}

// readyIn waits until so many replicas are reported ready in the control plane.
func (w *world) readyIn(want int32) {
	w.t.Helper()
	await(w.t, w.env.Karmada, w.web(), func(d *appsv1.Deployment) error { return same("ready", want, d.Status.ReadyReplicas) })
}

// holdings are the ids of what stays in a cluster, by name, and the versions of
// what is another owner's.
func (w *world) holdings(ctx context.Context, cluster string) (map[string]string, error) {
	held := map[string]string{}
	for what, object := range map[string]client.Object{"ConfigMap": w.kept(), "Deployment": w.web(), "Service": w.service(), "stranger": w.stranger()} {
		if err := w.inside(cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", what, cluster, err)
		}
		held[what] = string(object.GetUID())
		if what == "stranger" {
			held[what] += " " + object.GetResourceVersion()
		}
	}
	return held, nil
}

func (w *world) mustHold(cluster string) map[string]string {
	w.t.Helper()
	held, err := w.holdings(w.t.Context(), cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return held
}

// recovers waits until the clusters are as they were: ready, without taints, and
// their state reported; and until what is changed there by hand is put right.
func (w *world) recovers() {
	w.t.Helper()
	for _, name := range w.clusters() {
		await(w.t, w.env.Karmada, clusterNamed(name), all(readyIs(metav1.ConditionTrue), taintedBy()))
	}
	for _, name := range w.clusters() {
		w.rollOut(name)
		testenv.Update(w.t, w.inside(name), w.kept(), func(c *corev1.ConfigMap) { c.Data["color"] = "by hand" })
		await(w.t, w.inside(name), w.kept(), hasColor(w.color()))
	}
	w.readyIn(3 * (1 + w.round))
	for _, template := range []client.Object{w.kept(), w.web(), w.service(), w.named("coming")} {
		await(w.t, w.env.Karmada, bindingOf(w.t, template), both(names(pulledName, pushed, member1), func(b *workv1alpha2.ResourceBinding) error {
			return condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
		}))
	}
	awaitGone(w.t, w.env.Karmada, bindingOf(w.t, w.named("going")))
}

// fault is one thing that goes wrong.
type fault struct {
	// hits is the cluster that it happens to, or ofAll of them; empty means to none of
	// them.
	hits string
	// inject begins it, heal ends it.
	inject, heal func(*world)
	// meanwhile looks at what it does while it lasts; nil looks at nothing.
	meanwhile func(*world)
}

// noticed waits until it is known that a cluster is lost.
func noticed(env *testenv.Env, name string, status metav1.ConditionStatus, taint string) func(*world) {
	return func(w *world) {
		await(w.t, env.Karmada, clusterNamed(name), all(readyIs(status), taintedBy(taint)))
	}
}

// unimpressed checks that the changes arrive in the cluster all the same, and that
// it counts as ready.
func unimpressed(env *testenv.Env, name string) func(*world) {
	return func(w *world) {
		w.arrives(name)
		undisturbed(w.t, name+" is ready", func() error {
			return testenv.Held(w.t.Context(), 2*time.Second, func(ctx context.Context) error {
				c := clusterNamed(name)
				if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
					return err
				}
				return all(readyIs(metav1.ConditionTrue), taintedBy())(c)
			})
		})
	}
}

// lasts lets a fault last that nobody notices at once.
func lasts(during time.Duration, name string) func(*world) {
	return func(w *world) {
		testenv.Holds(w.t, "what "+name+" holds", during, func(ctx context.Context) error {
			_, err := w.holdings(ctx, name)
			return err
		})
	}
}

// flaps opens and refuses at a gate in turn until it is told to end.
func flaps(g *gate, every time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var turns sync.WaitGroup
	turns.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for refusing := true; ; refusing = !refusing {
			g.refuse(refusing)
			select {
			case <-ctx.Done():
				g.refuse(false)
				return
			case <-ticker.C:
			}
		}
	})
	return sync.OnceFunc(func() { cancel(); turns.Wait() })
}

// faults are what goes wrong, some of it at once: in a member, and for an agent.
func faults(env *testenv.Env) map[string][]fault {
	var flapping []func()
	const skew = 5 * time.Minute
	refuse := func(of func(*world) *gate, is bool) func(*world) { return func(w *world) { of(w).refuse(is) } }
	hold := func(of func(*world) *gate, is bool) func(*world) { return func(w *world) { of(w).set(is) } }
	toMember, toKarmada := func(w *world) *gate { return w.between }, func(w *world) *gate { return w.outside }
	cut := func(of func(*world) *gate) func(*world) { return func(w *world) { of(w).lose() } }
	flap := func(of func(*world) *gate) func(*world) {
		return func(w *world) {
			end := flaps(of(w), time.Second)
			w.t.Cleanup(end)
			flapping = append(flapping, end)
		}
	}
	calm := func(*world) {
		for _, end := range flapping {
			end()
		}
	}
	straight := func(w *world) {
		w.between.lead(w.t, w.push.Config.Host)
		w.outside.lead(w.t, env.Config.Host)
	}
	return map[string][]fault{
		"the API server of a member is down, and the control plane hangs for an agent": {
			{
				hits:   pushed,
				inject: func(w *world) { w.push.Stop() },
				heal: func(w *world) {
					if err := w.push.Start(context.WithoutCancel(w.t.Context())); err != nil {
						w.t.Fatal(err)
					}
				},
				meanwhile: noticed(env, pushed, metav1.ConditionFalse, notReady),
			},
			{hits: pulledName, inject: hold(toKarmada, true), heal: hold(toKarmada, false), meanwhile: lasts(4*time.Second, pulledName)},
		},
		"a member hangs, and the control plane hangs up on an agent": {
			{hits: pushed, inject: hold(toMember, true), heal: hold(toMember, false), meanwhile: lasts(3*time.Second, pushed)},
			{hits: pulledName, inject: refuse(toKarmada, true), heal: refuse(toKarmada, false)},
		},
		"a member is cut off": {
			{hits: pushed, inject: cut(toMember), heal: hold(toMember, false), meanwhile: noticed(env, pushed, metav1.ConditionFalse, notReady)},
		},
		"an agent is cut off": {
			{hits: pulledName, inject: cut(toKarmada), heal: hold(toKarmada, false), meanwhile: noticed(env, pulledName, metav1.ConditionUnknown, unreachable)},
		},
		"a member and the way of an agent flap": {
			{hits: pushed, inject: flap(toMember), heal: calm, meanwhile: lasts(4*time.Second, pushed)},
			{hits: pulledName, inject: flap(toKarmada), heal: calm},
		},
		"a member is slow": {{
			hits:      pushed,
			inject:    func(w *world) { w.between.lead(w.t, doorToMember(w.t, w.push.Config, late(time.Second))) }, //nolint:bodyclose // what delays an answer hands it on
			heal:      straight,
			meanwhile: unimpressed(env, pushed),
		}},
		"the control plane is slow for an agent": {{
			hits: pulledName,
			inject: func(w *world) {
				w.outside.lead(w.t, doorToKarmada(w.t, env, pulledName, asIs, late(500*time.Millisecond)))
			}, //nolint:bodyclose // what delays an answer hands it on
			heal:      straight,
			meanwhile: unimpressed(env, pulledName),
		}},
		"the token for a member is not valid any more": {{
			hits:      pushed,
			inject:    func(w *world) { deleteObject(w.t, w.push.Client, w.account) },
			heal:      func(w *world) { w.account = w.renewToken() },
			meanwhile: noticed(env, pushed, metav1.ConditionFalse, notReady),
		}},
		"the certificate of an agent is not valid any more": {{
			hits:      pulledName,
			inject:    func(w *world) { w.pull.write(w.t, w.outside.URL(), time.Second) },
			heal:      func(w *world) { w.pull.write(w.t, w.outside.URL(), time.Hour) },
			meanwhile: (*world).awaitSilence,
		}},
		"the clock of an agent is ahead": {{
			hits: pulledName,
			inject: func(w *world) {
				w.outside.lead(w.t, doorToKarmada(w.t, env, pulledName, skewedRequests(skew), skewed(-skew))) //nolint:bodyclose // what moves times hands the body on
			},
			heal:      straight,
			meanwhile: unimpressed(env, pulledName),
		}},
		"the control plane hangs up on its components": {{
			hits:   ofAll,
			inject: func(w *world) { w.inner.refuse(true) }, heal: func(w *world) { w.inner.refuse(false) },
			meanwhile: lasts(12*time.Second, pulledName),
		}},
		"a second agent has the same name": {{inject: (*world).runImpostor, heal: func(*world) {}}},
	}
}

// renewToken stores another token for the member, of an account of its own.
func (w *world) renewToken() *corev1.ServiceAccount {
	account, token, _ := grant(w.t, w.push, fmt.Sprintf("round-%d", w.round))
	storeToken(w.t, w.env, pushed, token)
	return account
}

// awaitSilence waits until nothing is heard of the agent.
func (w *world) awaitSilence() {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: pulledName}}
	await(w.t, w.env.Karmada, lease, func(l *coordinationv1.Lease) error {
		if silent := time.Since(l.Spec.RenewTime.Time); silent < 3*time.Second {
			return fmt.Errorf("the agent was heard of %s ago", silent)
		}
		return nil
	})
}

// runImpostor runs an agent of the same name in another cluster.
func (w *world) runImpostor() {
	before := await(w.t, w.env.Karmada, w.pull.cluster(), exists)
	other := *w.pull
	other.local = filepath.Join(w.t.TempDir(), "other.config")
	writeTokenKubeconfig(w.t, other.local, w.env.Members[member2])
	second := other.run(w.t)
	select {
	case <-second.ended:
	case <-time.After(testenv.Patience):
		w.t.Fatal("the second agent runs")
	}
	for _, told := range []string{"has been registered", before.Spec.ID, "is another cluster", "choose another name"} {
		if second.err == nil || !strings.Contains(second.err.Error(), told) {
			w.t.Errorf("the second agent ended with %v, want an error that tells %q", second.err, told)
		}
	}
	now := await(w.t, w.env.Karmada, w.pull.cluster(), exists)
	if diff := cmp.Diff(before.Spec, now.Spec); diff != "" {
		w.t.Errorf("the Cluster of the first one (-before +after):\n%s", diff)
	}
	if err := absent(w.t.Context(), member(w.env, member2), w.kept()); err != nil {
		w.t.Errorf("the workload in the other cluster: %v", err)
	}
}

// asIs changes nothing.
func asIs(next http.RoundTripper) http.RoundTripper { return next }

// Whatever goes wrong, nothing is lost: other clusters do not notice, nothing is
// deleted or made anew where it goes wrong, and everything is as it has to be soon
// after it went right.
func TestFaultsCostNothingButTimeAndNobodyElse(t *testing.T) {
	env := alone(t)
	w := newWorld(t, env)
	for name, together := range faults(env) {
		t.Run(name, func(t *testing.T) {
			outer := w.t
			w.t = t
			defer func() { w.t = outer }()
			w.passes(together)
		})
		if t.Failed() {
			return
		}
	}
}

// passes goes through faults that happen at once.
func (w *world) passes(faults []fault) {
	began := time.Now()
	w.begin()
	before := map[string]map[string]string{}
	for _, name := range w.clusters() {
		before[name] = w.mustHold(name)
	}
	heal := sync.OnceFunc(func() {
		for _, f := range faults {
			f.heal(w)
		}
	})
	w.t.Cleanup(heal)
	for _, f := range faults {
		f.inject(w)
	}
	w.change()
	well := w.others(faults)
	for _, name := range well {
		if took := w.arrives(name); took > usual {
			w.t.Errorf("changes reached %s, to which nothing happens, after %s", name, took)
		}
	}
	if hit := len(w.clusters()) - len(well); hit > 0 && len(well) > 0 {
		for _, name := range well {
			w.rollOut(name)
		}
		// What was reported last of those that are hit stands.
		w.readyIn(int32(len(well))*(1+w.round) + int32(hit)*w.round)
	}
	for _, f := range faults {
		if f.meanwhile != nil {
			f.meanwhile(w)
		}
	}
	lasted := time.Since(began)
	heal()
	healed := time.Now()
	for _, name := range w.clusters() {
		if took := w.arrives(name); took > afterwards {
			w.t.Errorf("what waited for %s came %s after the fault", name, took)
		}
	}
	arrived := time.Since(healed)
	w.recovers()
	w.t.Logf("it lasted %s; what waited came %s after it, all was well after %s", lasted.Round(time.Millisecond), arrived.Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
	for _, name := range w.clusters() {
		if err := same("what "+name+" holds", before[name], w.mustHold(name)); err != nil {
			w.t.Error(err)
		}
	}
}

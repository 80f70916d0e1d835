package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

// instance is one run through the scenario, in a namespace of its own.
type instance struct {
	env    *testenv.Env
	name   string
	points map[string]point
}

func newInstance(env *testenv.Env) *instance {
	return &instance{env: env, name: "crash-" + rand.String(5), points: map[string]point{}}
}

// step is what users do in the scenario, and what that leads to in the members.
type step struct {
	name string
	do   func(*instance, context.Context) error
	// then are the members that hold workloads of the instance after the step, from
	// those from which the step takes them.
	then, from []string
}

var steps = []step{
	{name: "create", do: (*instance).create, then: []string{member1, member2}},
	{name: "change", do: (*instance).change, then: []string{member1, member2}},
	{name: "move", do: (*instance).move, then: []string{member2, member3}, from: []string{member1}},
	{name: "abandon", do: (*instance).abandon, then: []string{member2, member3}},
	{name: "delete", do: (*instance).delete, from: []string{member2, member3}},
}

// reached tells how an instance is not where the step leads to.
func (s step) reached(state map[string]string) error {
	for key := range state {
		if len(s.then) == 0 && (strings.Contains(key, "ResourceBinding") || strings.Contains(key, "Work web") || strings.Contains(key, "Work settings")) {
			return fmt.Errorf("%s is left", key)
		}
	}
	for _, name := range []string{member1, member2, member3} {
		for _, part := range []string{"Deployment web", "ConfigMap settings"} {
			_, there := state[name+" "+part]
			if there != slices.Contains(s.then, name) {
				return fmt.Errorf("%s is in %s: %t", part, name, there)
			}
		}
	}
	return nil
}

func (i *instance) settings() *corev1.ConfigMap { return configMap(i.name, "settings-"+i.name) }

func (i *instance) web() *appsv1.Deployment {
	template := deployment(i.name, "web-"+i.name, 2)
	mounting(&template.Spec.Template.Spec, i.settings())
	template.Labels[inScenario] = "true"
	return template
}

func (i *instance) policy() *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: i.name, Name: "policy-" + i.name}}
}

// inScenario labels the workloads of instances.
const inScenario = "crash-points"

// create makes the namespace, a workload that needs a ConfigMap, a policy for two
// clusters and an override for one of them.
func (i *instance) create(ctx context.Context) error {
	selectors := []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	policy := i.policy()
	policy.Spec = policyv1alpha1.PropagationSpec{ResourceSelectors: selectors, Placement: on(member1, member2), PropagateDeps: true}
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.name, Name: "override-" + i.name},
		Spec: overrideSpec(selectors, policyv1alpha1.RuleWithCluster{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member2}},
			Overriders: policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
				Component: policyv1alpha1.Registry, Operator: policyv1alpha1.OverriderOpReplace, Value: "mirror.local",
			}}},
		}),
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.name}}, override, policy, i.settings(), i.web(),
	} {
		if err := i.env.Karmada.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// change gives the workload another image.
func (i *instance) change(ctx context.Context) error {
	patch := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"docker.io/library/nginx:1.28"}]`)
	return i.env.Karmada.Patch(ctx, i.web(), client.RawPatch(types.JSONPatchType, patch))
}

// move names another cluster in the place of the first.
func (i *instance) move(ctx context.Context) error {
	patch := []byte(`[{"op":"replace","path":"/spec/placement/clusterAffinity/clusterNames","value":["member2","member3"]}]`)
	return i.env.Karmada.Patch(ctx, i.policy(), client.RawPatch(types.JSONPatchType, patch))
}

// abandon deletes the policy; what it propagated stays.
func (i *instance) abandon(ctx context.Context) error { return i.env.Karmada.Delete(ctx, i.policy()) }

// delete deletes the template.
func (i *instance) delete(ctx context.Context) error { return i.env.Karmada.Delete(ctx, i.web()) }

// scenario is all instances, with the lives of the components that they go through.
type scenario struct {
	env       *testenv.Env
	t         testing.TB
	instances []*instance
	life      *life
}

// all does something with every instance.
func (s *scenario) all(what string, do func(*instance, context.Context) error) {
	s.t.Helper()
	users, ctx := errgroup.WithContext(s.t.Context())
	users.SetLimit(8)
	for _, each := range s.instances {
		users.Go(func() error { return do(each, ctx) })
	}
	if err := users.Wait(); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// begin gives the components a new life, in which instances die where the step
// says.
func (s *scenario) begin(of step) {
	s.t.Helper()
	hosts := map[string]string{hostOf(s.env.Config.Host): "karmada"}
	for name, each := range s.env.Members {
		hosts[hostOf(each.Config.Host)] = name
	}
	s.life = newLife(hosts)
	for _, each := range s.instances {
		if end, ok := each.points[of.name]; ok {
			s.life.points[each.name] = end
		}
	}
	s.env.Wrap = s.life.wrap
	if err := s.env.StartComponents(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func hostOf(url string) string {
	_, host, _ := strings.Cut(url, "://")
	return host
}

// kill ends the components: from one moment to the next nothing gets through.
func (s *scenario) kill() {
	s.t.Helper()
	s.life.end()
	if err := s.env.StopComponents(); err != nil {
		s.t.Fatal(err)
	}
}

// settle waits until the components have nothing more to do.
func (s *scenario) settle(of step) {
	s.t.Helper()
	testenv.Eventually(s.t, "calm after the step "+of.name, func(context.Context) error {
		if s.life.over() {
			return s.life.quiet(pause)
		}
		return s.life.quiet(longestDelay)
	})
}

// pause is a moment without writes in the middle of things.
const pause = time.Second

// pauses waits until most is done.
func (s *scenario) pauses(of step) {
	s.t.Helper()
	testenv.Eventually(s.t, "a pause in the step "+of.name, func(context.Context) error { return s.life.quiet(pause) })
}

// converges waits until every instance looks like the one that never died.
func (s *scenario) converges(of step, want map[string]string) uids {
	s.t.Helper()
	s.pauses(of)
	var ids uids
	var looked time.Time
	var wrong error
	testenv.Eventually(s.t, "the end of the step "+of.name, func(ctx context.Context) (err error) {
		if time.Since(looked) < pause { // a look at everything keeps the components from their work
			return wrong
		}
		defer func() { looked, wrong = time.Now(), err }()
		all, found, err := stored(ctx, s.env)
		if err != nil {
			return err
		}
		ids = found
		for _, each := range s.instances {
			if diff := cmp.Diff(want, all[each.name]); diff != "" {
				return fmt.Errorf("%s, which died %s, does not end as it should (-want +got):\n%s", each.name, each.points[of.name], diff)
			}
		}
		return nil
	})
	return ids
}

// obeys checks that a life has put workloads only where the step says, and has
// taken them away only where it says so.
func (s *scenario) obeys(of step) {
	s.t.Helper()
	for _, each := range s.instances {
		made, _ := s.life.written(each.name)
		for _, w := range made {
			if w.what == "namespace" || s.env.Members[w.where] == nil {
				continue
			}
			if w.verb == "POST" && !slices.Contains(of.then, w.where) || w.verb == "DELETE" && !slices.Contains(of.from, w.where) {
				s.t.Errorf("%s: %s, which dies %s: %s", of.name, each.name, each.points[of.name], w)
			}
		}
	}
}

// kept checks that what is in members before and after a step is one and the same.
func (s *scenario) kept(of step, before, after uids) {
	s.t.Helper()
	for _, each := range s.instances {
		for key, uid := range before[each.name] {
			if now, ok := after[each.name][key]; ok && now != uid {
				s.t.Errorf("%s: %s, which died %s: %s was deleted and created again", of.name, each.name, each.points[of.name], key)
			}
		}
	}
}

// silent checks that a new life finds nothing to write.
func (s *scenario) silent(of step) {
	s.t.Helper()
	testenv.Holds(s.t, "nothing is written after the step "+of.name, settled, func(context.Context) error {
		for _, each := range s.instances {
			if made, _ := s.life.written(each.name); len(made) > 0 {
				return fmt.Errorf("%s, which had died %s: %s", each.name, each.points[of.name], made[0])
			}
		}
		return nil
	})
}

// table is which writes a step takes, and how an instance looks then.
type table struct {
	rows []write
	// certain are the rows that every run has.
	certain map[write]bool
	ends    map[string]string
}

// rehearse runs some instances through all steps without dying.
func rehearse(t testing.TB, env *testenv.Env) map[string]table {
	s := &scenario{env: env, t: t}
	for range 3 {
		s.instances = append(s.instances, newInstance(s.env))
	}
	tables := map[string]table{}
	for _, each := range steps {
		s.begin(step{})
		s.all(each.name, each.do)
		ends := s.agrees(each)
		s.obeys(each)
		tables[each.name] = s.tabulate(ends)
		s.kill()
	}
	return tables
}

// agrees waits until all instances have come to the end of the step, and look
// alike.
func (s *scenario) agrees(of step) (ends map[string]string) {
	s.t.Helper()
	testenv.Eventually(s.t, "the end of the step "+of.name, func(ctx context.Context) error {
		if err := s.life.quiet(longestDelay); err != nil {
			return err
		}
		all, _, err := stored(ctx, s.env)
		if err != nil {
			return err
		}
		ends = all[s.instances[0].name]
		for _, each := range s.instances {
			err = errors.Join(err, of.reached(all[each.name]), same("an instance that never died", ends, all[each.name]))
		}
		return err
	})
	return ends
}

// tabulate makes a table of what this life has written.
func (s *scenario) tabulate(ends map[string]string) table {
	made := table{certain: map[write]bool{}, ends: ends}
	times := map[write]int{}
	for _, each := range s.instances {
		all, _ := s.life.written(each.name)
		for _, row := range all {
			if times[row]++; times[row] == 1 {
				made.rows = append(made.rows, row)
			}
			made.certain[row] = times[row] == len(s.instances) && !strings.HasSuffix(row.resource, "/status")
		}
	}
	return made
}

// Whatever moment a process is killed at, everything ends as though it had not been.
//
// Some instances of the scenario go through it undisturbed first. The writes that
// the components make for them are the table of crash points, their state after
// each step is what all others have to come to. Then there are two instances for
// each row of a step: the process dies before the write, which is never sent, or
// after it, which is stored and unheard of.
//
// A process that dies leaves nothing but what is stored. So it needs no process of
// its own to die for an instance: from its point on no write about this instance
// gets through, as though there were no process any more, while the others come to
// theirs. When all have, the components are killed, with every write failing before
// they are told to stop, so that none is made while they do; what they remembered
// of writes that failed is gone with them. The next life must bring all instances to
// the end, without making anything anew or in the wrong place, and the one after
// it must find nothing to write. How many reports on status become one depends on
// the time: some rows may not be met in a run, each kind of write has to be.
//
// The namespaces of the instances are left to the environment: the end of so many
// at once is work for minutes.
func TestProcessesThatDieAroundAnyWriteEndAlike(t *testing.T) {
	env := alone(t)
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		env.Wrap = nil
		if err := errors.Join(env.StopComponents(), env.StartComponents(context.WithoutCancel(t.Context()))); err != nil {
			t.Fatal(err)
		}
	})
	behave(t, env)
	tables := rehearse(t, env)
	s := &scenario{env: env, t: t}
	for _, each := range steps {
		for n, row := range tables[each.name].rows {
			t.Logf("%-8s %s", each.name, row)
			for m, when := range []side{before, after} {
				for len(s.instances) <= 2*n+m {
					s.instances = append(s.instances, newInstance(s.env))
				}
				s.instances[2*n+m].points[each.name] = point{write: row, side: when, certain: tables[each.name].certain[row]}
			}
		}
	}
	var ids uids
	hit := map[kind]bool{}
	s.begin(steps[0])
	for n, each := range steps {
		began := time.Now()
		s.all(each.name, each.do)
		s.settle(each)
		s.obeys(each)
		s.tell(each, hit)
		s.kill()
		s.begin(step{})
		before := ids
		ids = s.converges(each, tables[each.name].ends)
		s.obeys(each)
		s.kept(each, before, ids)
		s.kill()
		s.begin(steps[min(n+1, len(steps)-1)])
		s.silent(each)
		t.Logf("%s: %s", each.name, time.Since(began).Round(time.Millisecond))
	}
	for kind, reached := range hit {
		if !reached {
			t.Errorf("no process died %s %s of %s by %s", kind.side, kind.verb, kind.resource, kind.who)
		}
	}
}

// kind is a kind of write, and where a process died around it.
type kind struct {
	who, verb, resource string
	side                side
}

func (p point) kind() kind { return kind{p.write.who, p.write.verb, p.write.resource, p.side} }

// tell tells which points of a step were reached, and notes for each kind whether
// one was.
func (s *scenario) tell(of step, hit map[kind]bool) {
	reached, missed := 0, []string{}
	for _, each := range s.instances {
		end, mortal := each.points[of.name]
		if !mortal {
			continue
		}
		_, dead := s.life.written(each.name)
		hit[end.kind()] = hit[end.kind()] || dead
		if dead {
			reached++
			continue
		}
		missed = append(missed, end.String())
	}
	s.t.Logf("%s: %d points were reached; %d writes were not made:\n%s", of.name, reached, len(missed), strings.Join(missed, "\n"))
}

// behave does what the controllers of members would do to the workloads: they
// become ready at once.
func behave(t testing.TB, env *testenv.Env) {
	ctx, stop := context.WithCancel(t.Context())
	members, ctx := errgroup.WithContext(ctx)
	for _, each := range env.Members {
		changes, err := each.Client.Watch(ctx, &appsv1.DeploymentList{}, client.HasLabels{inScenario})
		if err != nil {
			t.Fatal(err)
		}
		members.Go(func() error {
			defer changes.Stop()
			for change := range changes.ResultChan() {
				if d, ok := change.Object.(*appsv1.Deployment); ok && change.Type != watch.Deleted {
					if err := beReady(ctx, each.Client, d); err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		})
	}
	t.Cleanup(func() {
		stop()
		if err := members.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("the controllers of the members ended: %v", err)
		}
	})
}

// beReady makes a Deployment ready. Of one that has changed meanwhile there is
// more to come.
func beReady(ctx context.Context, side client.Client, d *appsv1.Deployment) error {
	n := *d.Spec.Replicas
	if d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == n {
		return nil
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	err := client.IgnoreNotFound(side.Status().Update(ctx, d))
	if apierrors.IsConflict(err) || ctx.Err() != nil {
		return nil //nolint:nilerr // the next change is about to come, or the test is over
	}
	return err
}

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

// scenarioInstance is one execution of scenarioSteps in its own namespace. Many instances run at
// the same time on the same components. Each has at most one crash point for each step.
type scenarioInstance struct {
	env    *testenv.Env
	name   string
	points map[string]crashPoint
}

func newScenarioInstance(env *testenv.Env) *scenarioInstance {
	return &scenarioInstance{env: env, name: "crash-" + rand.String(5), points: map[string]crashPoint{}}
}

// scenarioStep is an action of users and its expected result in the members.
type scenarioStep struct {
	name string
	act  func(*scenarioInstance, context.Context) error
	// wantMembers are the members with workloads of the instance after the step. leftMembers are the
	// members from which the step removes them.
	wantMembers, leftMembers []string
}

var scenarioSteps = []scenarioStep{
	{name: "create", act: (*scenarioInstance).createObjects, wantMembers: []string{member1, member2}},
	{name: "change image", act: (*scenarioInstance).changeImage, wantMembers: []string{member1, member2}},
	{name: "move", act: (*scenarioInstance).moveToMember3, wantMembers: []string{member2, member3}, leftMembers: []string{member1}},
	{name: "delete policy", act: (*scenarioInstance).deletePolicy, wantMembers: []string{member2, member3}},
	{name: "delete template", act: (*scenarioInstance).deleteTemplate, leftMembers: []string{member2, member3}},
}

// checkReached returns an error if the state of an instance is not the result of the step.
func (s scenarioStep) checkReached(state map[string]string) error {
	for key := range state {
		if len(s.wantMembers) == 0 && (strings.Contains(key, "ResourceBinding") || strings.Contains(key, "Work web") || strings.Contains(key, "Work settings")) {
			return fmt.Errorf("%s still exists", key)
		}
	}
	for _, name := range []string{member1, member2, member3} {
		for _, part := range []string{"Deployment web", "ConfigMap settings"} {
			_, isPresent := state[name+" "+part]
			if isPresent != slices.Contains(s.wantMembers, name) {
				return fmt.Errorf("presence of %s in %s is %t", part, name, isPresent)
			}
		}
	}
	return nil
}

func (s *scenarioInstance) newConfigMap() *corev1.ConfigMap {
	return configMap(s.name, "settings-"+s.name)
}

func (s *scenarioInstance) newDeployment() *appsv1.Deployment {
	template := deployment(s.name, "web-"+s.name, 2)
	addVolumes(&template.Spec.Template.Spec, s.newConfigMap())
	template.Labels[scenarioLabel] = "true"
	return template
}

func (s *scenarioInstance) newPolicy() *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "policy-" + s.name}}
}

// scenarioLabel is the label of the workloads of instances.
const scenarioLabel = "crash-points"

// createObjects creates the namespace, a workload with a ConfigMap as dependency, a policy for two
// clusters and an override policy for one of them.
func (s *scenarioInstance) createObjects(ctx context.Context) error {
	selectors := []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	policy := s.newPolicy()
	policy.Spec = policyv1alpha1.PropagationSpec{ResourceSelectors: selectors, Placement: placementOn(member1, member2), PropagateDeps: true}
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "override-" + s.name},
		Spec: newOverrideSpec(selectors, policyv1alpha1.RuleWithCluster{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member2}},
			Overriders: policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
				Component: policyv1alpha1.Registry, Operator: policyv1alpha1.OverriderOpReplace, Value: "mirror.local",
			}}},
		}),
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, override, policy, s.newConfigMap(), s.newDeployment(),
	} {
		if err := s.env.Karmada.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// changeImage changes the image of the workload.
func (s *scenarioInstance) changeImage(ctx context.Context) error {
	patch := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"docker.io/library/nginx:1.28"}]`)
	return s.env.Karmada.Patch(ctx, s.newDeployment(), client.RawPatch(types.JSONPatchType, patch))
}

// moveToMember3 changes the policy from member1 to member3. The workload stays in member2. The new
// placement has an affinity group, so that the scheduler itself writes the status.
func (s *scenarioInstance) moveToMember3(ctx context.Context) error {
	patch := []byte(`[{"op":"replace","path":"/spec/placement","value":{"clusterAffinities":[{"affinityName":"moved","clusterNames":["member2","member3"]}]}}]`)
	return s.env.Karmada.Patch(ctx, s.newPolicy(), client.RawPatch(types.JSONPatchType, patch))
}

// deletePolicy deletes the policy. The propagated objects stay.
func (s *scenarioInstance) deletePolicy(ctx context.Context) error {
	return s.env.Karmada.Delete(ctx, s.newPolicy())
}

// deleteTemplate deletes the template of the workload.
func (s *scenarioInstance) deleteTemplate(ctx context.Context) error {
	return s.env.Karmada.Delete(ctx, s.newDeployment())
}

// scenario contains all instances and the current run of the components.
type scenario struct {
	env       *testenv.Env
	t         testing.TB
	instances []*scenarioInstance
	run       *processRun
}

// forEachInstance performs an action for every instance, up to eight at the same time.
func (s *scenario) forEachInstance(what string, do func(*scenarioInstance, context.Context) error) {
	s.t.Helper()
	users, ctx := errgroup.WithContext(s.t.Context())
	users.SetLimit(8)
	for _, instance := range s.instances {
		users.Go(func() error { return do(instance, ctx) })
	}
	if err := users.Wait(); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// startComponents starts the components in a new run, in which instances crash at their crash point
// of the step.
func (s *scenario) startComponents(step scenarioStep) {
	s.t.Helper()
	hosts := map[string]string{urlHost(s.env.Config.Host): "karmada"}
	for name, each := range s.env.Members {
		hosts[urlHost(each.Config.Host)] = name
	}
	s.run = newProcessRun(hosts)
	for _, each := range s.instances {
		if point, ok := each.points[step.name]; ok {
			s.run.points[each.name] = point
		}
	}
	s.env.Wrap = s.run.wrapTransport
	if err := s.env.StartComponents(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func urlHost(url string) string {
	_, host, _ := strings.Cut(url, "://")
	return host
}

// killComponents rejects all further writes and then stops the components.
func (s *scenario) killComponents() {
	s.t.Helper()
	s.run.kill()
	if err := s.env.StopComponents(); err != nil {
		s.t.Fatal(err)
	}
}

// awaitSettled waits until the components have nothing left to do.
func (s *scenario) awaitSettled(step scenarioStep) {
	s.t.Helper()
	testenv.Eventually(s.t, "no writes after the step "+step.name, func(context.Context) error {
		if s.run.allCrashed() {
			return s.run.checkNoWritesFor(statusPause)
		}
		return s.run.checkNoWritesFor(maxWriteDelay)
	})
}

// writePause is a time without writes after which most of a step is done.
const writePause = time.Second

// statusPause is more than the longest time between the last delivery of a step and its statuses.
// While many Works are delivered, statuses wait. The rate of deliveries counts the last whole
// second, and the status writer reads the rate once a second.
const statusPause = 4 * time.Second

// awaitWritePause waits until there was no write for writePause.
func (s *scenario) awaitWritePause(step scenarioStep) {
	s.t.Helper()
	testenv.Eventually(s.t, "a pause of writes in the step "+step.name, func(context.Context) error { return s.run.checkNoWritesFor(writePause) })
}

// awaitConverged waits until every instance has the state of an instance that never crashed.
func (s *scenario) awaitConverged(step scenarioStep, want map[string]string) instanceUIDs {
	s.t.Helper()
	s.awaitWritePause(step)
	var ids instanceUIDs
	var lastCheck time.Time
	var lastErr error
	testenv.Eventually(s.t, "the end state of the step "+step.name, func(ctx context.Context) (err error) {
		if time.Since(lastCheck) < writePause { // reading all objects slows the components down
			return lastErr
		}
		defer func() { lastCheck, lastErr = time.Now(), err }()
		states, found, err := readInstances(ctx, s.env)
		if err != nil {
			return err
		}
		ids = found
		for _, instance := range s.instances {
			if diff := cmp.Diff(want, states[instance.name]); diff != "" {
				return fmt.Errorf("%s, which crashed %s, has another end state (-want +got):\n%s", instance.name, instance.points[step.name], diff)
			}
		}
		return nil
	})
	return ids
}

// checkMemberWrites checks that a run created and deleted workloads only in the members of the step.
func (s *scenario) checkMemberWrites(step scenarioStep) {
	s.t.Helper()
	for _, instance := range s.instances {
		writes, _ := s.run.writesOf(instance.name)
		for _, w := range writes {
			if w.part == "namespace" || s.env.Members[w.server] == nil {
				continue
			}
			if w.verb == "POST" && !slices.Contains(step.wantMembers, w.server) || w.verb == "DELETE" && !slices.Contains(step.leftMembers, w.server) {
				s.t.Errorf("%s: %s, which crashes %s, has an unexpected write: %s", step.name, instance.name, instance.points[step.name], w)
			}
		}
	}
}

// checkUIDsUnchanged checks that no member object was recreated during a step.
func (s *scenario) checkUIDsUnchanged(step scenarioStep, before, after instanceUIDs) {
	s.t.Helper()
	for _, instance := range s.instances {
		for key, uid := range before[instance.name] {
			if now, ok := after[instance.name][key]; ok && now != uid {
				s.t.Errorf("%s: %s, which crashed %s: %s was recreated", step.name, instance.name, instance.points[step.name], key)
			}
		}
	}
}

// checkNoWrites checks that a new run makes no writes.
func (s *scenario) checkNoWrites(step scenarioStep) {
	s.t.Helper()
	testenv.Holds(s.t, "no writes by a new run after the step "+step.name, settledPeriod, func(context.Context) error {
		for _, instance := range s.instances {
			if writes, _ := s.run.writesOf(instance.name); len(writes) > 0 {
				return fmt.Errorf("%s, which had crashed %s, has another write: %s", instance.name, instance.points[step.name], writes[0])
			}
		}
		return nil
	})
}

// stepRecord contains the writes of a step and the state of an instance after the step.
type stepRecord struct {
	writes []observedWrite
	// inEveryRun are the writes that every run makes.
	inEveryRun map[observedWrite]bool
	endState   map[string]string
}

// recordSteps runs some instances through all steps without a crash.
func recordSteps(t testing.TB, env *testenv.Env) map[string]stepRecord {
	s := &scenario{env: env, t: t}
	for range 3 {
		s.instances = append(s.instances, newScenarioInstance(s.env))
	}
	records := map[string]stepRecord{}
	for _, step := range scenarioSteps {
		s.startComponents(scenarioStep{})
		s.forEachInstance(step.name, step.act)
		endState := s.awaitSameEndState(step)
		s.checkMemberWrites(step)
		records[step.name] = s.newStepRecord(endState)
		s.killComponents()
	}
	return records
}

// awaitSameEndState waits until all instances have completed the step with the same state.
func (s *scenario) awaitSameEndState(step scenarioStep) (endState map[string]string) {
	s.t.Helper()
	testenv.Eventually(s.t, "the end state of the step "+step.name, func(ctx context.Context) error {
		if err := s.run.checkNoWritesFor(maxWriteDelay); err != nil {
			return err
		}
		states, _, err := readInstances(ctx, s.env)
		if err != nil {
			return err
		}
		endState = states[s.instances[0].name]
		for _, instance := range s.instances {
			err = errors.Join(err, step.checkReached(states[instance.name]), checkEqual("state of an instance that never crashed", endState, states[instance.name]))
		}
		return err
	})
	return endState
}

// newStepRecord returns the record of the writes of this run.
func (s *scenario) newStepRecord(endState map[string]string) stepRecord {
	record := stepRecord{inEveryRun: map[observedWrite]bool{}, endState: endState}
	counts := map[observedWrite]int{}
	for _, instance := range s.instances {
		writes, _ := s.run.writesOf(instance.name)
		for _, write := range writes {
			if counts[write]++; counts[write] == 1 {
				record.writes = append(record.writes, write)
			}
			record.inEveryRun[write] = counts[write] == len(s.instances) && !strings.HasSuffix(write.resource, "/status")
		}
	}
	return record
}

// TestCrashAroundEveryWriteConverges checks that a crash at any moment does not change the end
// state.
//
// First some instances go through the scenario without a crash. Their writes are the crash points,
// and their state after each step is the expected state of all other instances. Then there are two
// instances for each write of a step. For one instance, the process crashes before the write, which
// is never sent. For the other instance, the process crashes after the write, which is stored
// without a response.
//
// A crashed process leaves only what is stored. So an instance needs no process of its own: from
// its crash point on, all writes for this instance fail, while the other instances continue to
// their crash points. After that, the test kills the components: all their writes fail before they
// are told to stop, so the shutdown writes nothing, and they forget the failed writes. The next run
// must bring all instances to the end state without recreating objects and without writes to
// members that the step does not name. The run after that must make no writes. Status reports are
// batched, so their number depends on timing. Some crash points may not be reached in a run, but at
// least one crash point of each writeCategory must be reached.
//
// The test does not delete the namespaces of the instances, because the deletion of so many takes
// minutes. The environment deletes them.
func TestCrashAroundEveryWriteConverges(t *testing.T) {
	env := aloneForLong(t)
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		env.Wrap = nil
		if err := errors.Join(env.StopComponents(), env.StartComponents(context.WithoutCancel(t.Context()))); err != nil {
			t.Fatal(err)
		}
	})
	simulateDeploymentControllers(t, env)
	records := recordSteps(t, env)
	s := &scenario{env: env, t: t}
	for _, step := range scenarioSteps {
		for n, write := range records[step.name].writes {
			t.Logf("%-8s %s", step.name, write)
			for m, side := range []crashSide{beforeWrite, afterWrite} {
				for len(s.instances) <= 2*n+m {
					s.instances = append(s.instances, newScenarioInstance(s.env))
				}
				s.instances[2*n+m].points[step.name] = crashPoint{write: write, side: side, inEveryRun: records[step.name].inEveryRun[write]}
			}
		}
	}
	var ids instanceUIDs
	reachedCategories := map[writeCategory]bool{}
	s.startComponents(scenarioSteps[0])
	for n, step := range scenarioSteps {
		began := time.Now()
		s.forEachInstance(step.name, step.act)
		s.awaitSettled(step)
		s.checkMemberWrites(step)
		s.logReachedPoints(step, reachedCategories)
		s.killComponents()
		s.startComponents(scenarioStep{})
		before := ids
		ids = s.awaitConverged(step, records[step.name].endState)
		s.checkMemberWrites(step)
		s.checkUIDsUnchanged(step, before, ids)
		s.killComponents()
		s.startComponents(scenarioSteps[min(n+1, len(scenarioSteps)-1)])
		s.checkNoWrites(step)
		t.Logf("%s: %s", step.name, time.Since(began).Round(time.Millisecond))
	}
	for category, reached := range reachedCategories {
		if !reached {
			t.Errorf("no process crashed %s %s of %s by %s", category.side, category.verb, category.resource, category.writer)
		}
	}
}

// writeCategory is a kind of write and the side on which a process crashes.
type writeCategory struct {
	writer, verb, resource string
	side                   crashSide
}

func (c crashPoint) category() writeCategory {
	return writeCategory{c.write.writer, c.write.verb, c.write.resource, c.side}
}

// logReachedPoints logs which crash points of a step were reached, and records for each category
// whether at least one crash point was reached.
func (s *scenario) logReachedPoints(step scenarioStep, reachedCategories map[writeCategory]bool) {
	reached, missed := 0, []string{}
	for _, instance := range s.instances {
		point, hasPoint := instance.points[step.name]
		if !hasPoint {
			continue
		}
		_, crashed := s.run.writesOf(instance.name)
		reachedCategories[point.category()] = reachedCategories[point.category()] || crashed
		if crashed {
			reached++
			continue
		}
		missed = append(missed, point.String())
	}
	s.t.Logf("%s: %d crash points were reached; %d were not:\n%s", step.name, reached, len(missed), strings.Join(missed, "\n"))
}

// simulateDeploymentControllers makes Deployments in members ready at once, in place of the
// controllers of the members.
func simulateDeploymentControllers(t testing.TB, env *testenv.Env) {
	ctx, stop := context.WithCancel(t.Context())
	members, ctx := errgroup.WithContext(ctx)
	for _, target := range env.Members {
		changes, err := target.Client.Watch(ctx, &appsv1.DeploymentList{}, client.HasLabels{scenarioLabel})
		if err != nil {
			t.Fatal(err)
		}
		members.Go(func() error {
			defer changes.Stop()
			for change := range changes.ResultChan() {
				if d, ok := change.Object.(*appsv1.Deployment); ok && change.Type != watch.Deleted {
					if err := markDeploymentReady(ctx, target.Client, d); err != nil {
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
			t.Errorf("the simulated controllers ended with %v", err)
		}
	})
}

// markDeploymentReady makes a Deployment ready. A conflict is ignored because the watch delivers the
// newer version.
func markDeploymentReady(ctx context.Context, memberClient client.Client, d *appsv1.Deployment) error {
	n := *d.Spec.Replicas
	if d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == n {
		return nil
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	err := client.IgnoreNotFound(memberClient.Status().Update(ctx, d))
	if apierrors.IsConflict(err) || ctx.Err() != nil {
		return nil //nolint:nilerr // the watch delivers the newer version, or the test has ended
	}
	return err
}

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/push"
)

// updateMembers determines which members exist, and in which mode each of them is registered.
func (i *installation) updateMembers() (err error) {
	if i.options.Members < 0 {
		return nil
	}
	before, pulledBefore := i.state.Members, i.state.PullMembers
	var removed []string
	i.state.Members, removed = resizeMembers(before, i.options.Members)
	if len(removed) > 0 {
		i.progress.report(event{Text: fmt.Sprintf("%s: not started, because --members is %d; their data is kept, and their Clusters stay until `karmadactl unjoin` or `unregister`",
			strings.Join(removed, ", "), i.options.Members)})
	}
	i.state.PullMembers, err = selectPullMembers(i.state.Members, i.options.PullMembers, i.programsDisabled,
		func(text string) { i.progress.report(event{Text: text}) })
	if i.programsDisabled != nil || i.options.PullMembers < 0 {
		// Registered members keep their mode.
		added := slices.DeleteFunc(i.state.PullMembers, func(name string) bool { return slices.Contains(before, name) })
		i.state.PullMembers = append(intersect(pulledBefore, i.state.Members), added...)
	}
	return err
}

// validateMemberName returns an error if a member cannot have the given name. Names of servers are
// reserved, because the ports and logs of both members and servers are stored by name.
func validateMemberName(name string) error {
	if err := registration.ValidateName(name); err != nil {
		return err
	}
	for _, reserved := range []string{"karmada", estimatorPrefix, outputLog} {
		if strings.HasPrefix(name, reserved) {
			return fmt.Errorf("member name %q: names that begin with %s are reserved for Karmada: choose another name", name, reserved)
		}
	}
	return nil
}

// memberPrefix and a number form the default name of a member.
const memberPrefix = "member"

// resizeMembers returns count members: the first ones in before, and as many new ones as needed. New
// members get the first names in the sequence member1, member2 and so on that before does not contain.
// removed are the other members in before.
func resizeMembers(before []string, count int) (members, removed []string) {
	if len(before) >= count {
		return slices.Clone(before[:count]), before[count:]
	}
	members = slices.Clone(before)
	for n := 1; len(members) < count; n++ {
		if name := memberPrefix + strconv.Itoa(n); !slices.Contains(before, name) {
			members = append(members, name)
		}
	}
	return members, nil
}

// reportIdleMembers prints which agents do not run.
func (i *installation) reportIdleMembers() {
	if i.programsDisabled == nil || len(i.state.PullMembers) == 0 {
		return
	}
	i.idleMembers = i.state.PullMembers
	i.progress.report(event{Text: fmt.Sprintf("%s: no agent runs in these members: %v", strings.Join(i.idleMembers, ", "),
		i.programsDisabled)})
}

// prepareMembers assigns a region, ports and certificates to the members in the state, and stores the
// state. processes is the number of processes that will be started.
func (i *installation) prepareMembers(members []string, processes int, progress *progressReporter) error {
	if err := verifyInotifyLimits(inotifyInstances * processes); err != nil {
		progress.report(event{Text: fmt.Sprintf("Warning: %v. Programs that run in members may fail with \"too many open files\".", err)})
	}
	i.state.assignRegions()
	if err := choosePorts(i.state.Ports, members, estimatorPortNames(members)); err != nil {
		return err
	}
	if err := i.storeState(); err != nil {
		return err
	}
	return i.dir.ensureEstimatorCertificates(members, i.options.CertificateLifetime)
}

// startMembers starts the members' processes. Each supervisor's channel ready reports whether the
// member has started.
func (i *installation) startMembers(ctx context.Context, members []string) []*memberSupervisor {
	started := make([]*memberSupervisor, len(members))
	for n, name := range members {
		started[n] = i.newSupervisor(name)
	}
	i.stateMu.Lock()
	i.supervisors = append(i.supervisors, started...)
	i.stateMu.Unlock()
	for _, member := range started {
		member.start(ctx, &i.wg)
	}
	return started
}

func (i *installation) newSupervisor(name string) *memberSupervisor {
	m := &memberSupervisor{
		options: memberOptions{
			Name: name, Dir: i.dir.memberDir(name), Port: i.state.Ports[name], CertificateLifetime: i.options.CertificateLifetime,
			AllowUnconfined: i.options.MemberPrograms != nil && *i.options.MemberPrograms,
			EstimatorPort:   i.state.Ports[estimatorPortName(name)], EstimatorsDir: i.dir.estimatorsDir(), FeatureGates: i.options.Gates.Given(),
		},
		ready: make(chan error, 1), ended: make(chan struct{}),
	}
	if i.programsDisabled != nil {
		m.options.ProgramsDisabled = i.programsDisabled.Error()
	}
	m.onStarted = i.recordProcesses
	m.openLog = func() (*os.File, error) { return i.dir.openLog(name) }
	m.maintain = func(ctx context.Context) { i.dir.maintainMemberCertificate(ctx, name, i.options.CertificateLifetime) }
	nodes, location := i.state.NodesPerMember, topologyOf(i.state.Regions[name])
	m.newCommand = func() *exec.Cmd { return newMemberProcess(m.options, nodes, location) }
	return m
}

// awaitMembers waits until the members have started for the first time.
func (i *installation) awaitMembers(ctx context.Context, started []*memberSupervisor, progress *progressReporter) error {
	if len(started) == 0 {
		return nil
	}
	if err := progress.step(countOf(len(started), "member cluster"), func() error { return awaitAll(ctx, started) }); err != nil {
		return err
	}
	return i.writeMembersKubeconfig()
}

// registerMembers registers the started members, waits until they are Ready, and publishes the
// addresses of their estimators.
func (i *installation) registerMembers(ctx context.Context, started []*memberSupervisor, progress *progressReporter) error {
	if !i.state.SkipJoin && len(started) > 0 {
		step := "members joined and Ready"
		if !i.runsControllerManager() {
			step = "members joined"
		}
		if err := progress.step(step, func() error { return i.joinMembers(ctx, started, progress) }); err != nil {
			return err
		}
	}
	return i.publishEstimators(ctx, progress)
}

func awaitAll(ctx context.Context, started []*memberSupervisor) error {
	var errs []error
	for _, member := range started {
		select {
		case err := <-member.ready:
			errs = append(errs, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// writeMembersKubeconfig writes the kubeconfig that contains one context for each running member.
func (i *installation) writeMembersKubeconfig() error {
	accesses := make([]pki.KubeconfigContext, 0, len(i.supervisors))
	for _, member := range i.supervisors {
		access, err := member.adminContext()
		if errors.Is(err, os.ErrNotExist) {
			continue // the member has never started
		}
		if err != nil {
			return err
		}
		accesses = append(accesses, access)
	}
	return pki.WriteKubeconfig(i.dir.membersKubeconfig(), accesses...)
}

// joinMembers concurrently registers the members that are not registered yet.
func (i *installation) joinMembers(ctx context.Context, started []*memberSupervisor, progress *progressReporter) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	names := make([]string, len(started))
	for n, member := range started {
		names[n] = member.options.Name
	}
	registered, err := registeredClusters(ctx, i.control.Config(), names)
	if err != nil {
		return err
	}
	errs := make([]error, len(started))
	var joining sync.WaitGroup
	for n, name := range names {
		location := topologyOf(i.state.Regions[name])
		switch {
		case slices.Contains(registered, name):
		case i.isPullMember(name):
			joining.Go(func() { errs[n] = i.registerMember(ctx, name, location) })
		default:
			joining.Go(func() { errs[n] = i.joinMember(ctx, name, location) })
		}
	}
	joining.Wait()
	joined, err := i.joinedClusters(names, errs, progress)
	if err != nil || !i.runsControllerManager() {
		return err
	}
	if err := awaitClustersReady(ctx, i.control.Config(), joined, i.startedAt); err != nil {
		return err
	}
	return i.clearRegistrations()
}

// runsControllerManager reports whether this process runs the controller manager, which monitors the
// members.
func (i *installation) runsControllerManager() bool {
	components, _ := i.options.selectComponents()
	return slices.Contains(components, programs.ControllerManager)
}

func (i *installation) joinMember(ctx context.Context, name string, location topology) error {
	member, err := i.memberConfig(name)
	if err != nil {
		return err
	}
	join := push.Join{
		Name: name, ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster,
		Provider: simulatedProvider, Region: location.Region, Zones: location.Zones,
		Karmada: i.control.Config(), Member: member, Log: func(string, ...any) {},
	}
	return retryUnavailable(ctx, func() error { return join.Run(ctx) })
}

// memberConfig returns the client configuration of the member's administrator.
func (i *installation) memberConfig(name string) (*rest.Config, error) {
	member, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: i.dir.membersKubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of member %q: %w", name, err)
	}
	return member, nil
}

// deletedSuffix marks the directory of a member whose removal has begun. Member names contain no dot.
const deletedSuffix = ".deleted"

// deleteMemberDir deletes a member's data. It first renames the directory, so that a member never
// starts with only a part of its data.
func (d dataDir) deleteMemberDir(name string) error {
	if err := os.Rename(d.memberDir(name), d.memberDir(name)+deletedSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the data of member %q: %w", name, err)
	}
	return d.removeDeletedMembers()
}

// removeDeletedMembers deletes the directories that deleteMemberDir renamed, including those from an
// interrupted run.
func (d dataDir) removeDeletedMembers() error {
	paths, err := filepath.Glob(d.memberDir("*" + deletedSuffix))
	for _, path := range paths {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return fmt.Errorf("removing the data of a removed member: %w", err)
	}
	return nil
}

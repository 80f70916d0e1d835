// Package up answers: how does a user try Karmada on one machine, with one command and nothing
// installed? It implements `karmada up`, `down`, `status` and the simulated member clusters.
//
// One process runs the control plane. Each member cluster is a child process of the same program.
// A child ends when its parent ends, even if the parent is killed. All data is in one data
// directory, which only one process at a time may use.
package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kubernetesversion "k8s.io/component-base/version"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/registration/push"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/standalone/processnode"
)

// Options are the flags of `karmada up`.
type Options struct {
	// DataDir is the directory of all data. It is created if it does not exist.
	DataDir string
	// BindAddress is the address on which the API server of the control plane listens.
	BindAddress string
	// Members is the number of simulated member clusters. A negative value means the number of the
	// last start.
	Members int
	// PullMembers is the number of members in pull mode. A negative value means that every third
	// member is in pull mode.
	PullMembers int
	// NodesPerMember is the number of nodes of each member. 0 means the number of the last
	// start.
	NodesPerMember int
	// CertificateLifetime is the validity of certificates. They are renewed automatically.
	CertificateLifetime time.Duration
	// Join selects whether the members are registered. nil means the value of the last start, and
	// true in the first start.
	Join *bool
	// Components selects the components of Karmada that run in this process, in the syntax of
	// programs.IsSelected.
	Components []string
	// Gates are the feature gates of all components. nil means the defaults.
	Gates *gates.Set
	// ExtraConfig are flags of components, in the syntax of components.Configure.
	ExtraConfig []string
	// AuditLog is the path of the audit log of the control plane's API server. Empty means no
	// audit log.
	AuditLog string
	// MemberPrograms selects whether Pods with images of Karmada in members run as processes of
	// this machine. nil means that they run if this is safe.
	MemberPrograms *bool
}

// selectComponents returns the names of the components that this process runs, and the names of
// the components that the user runs.
func (o Options) selectComponents() (run, excluded []string) {
	for _, name := range components.SelectableNames() {
		if programs.IsSelected(o.Components, name, true) {
			run = append(run, name)
			continue
		}
		excluded = append(excluded, name)
	}
	return run, excluded
}

// readyTimeout is the time limit for members to become Ready.
const readyTimeout = 4 * time.Minute

// installation is one run of `karmada up`.
type installation struct {
	options     Options
	dir         dataDir
	state       storedState
	progress    *progressReporter
	supervisors []*memberSupervisor
	// programsDisabled is the reason why members run no programs. It is nil if members run
	// programs. idleMembers are the pull mode members whose agents do not run for this reason.
	programsDisabled error
	idleMembers      []string
	// estimatorCertificates are the certificates with which the control plane and the estimators of
	// members trust each other.
	estimatorCertificates []pki.Renewable
	// startedAt is the start time of this run.
	startedAt time.Time
	wg        sync.WaitGroup

	processesMu sync.Mutex
	// stateMu guards the state while members register concurrently.
	stateMu sync.Mutex
}

// runInstallation starts everything, reports when the installation is ready, and runs until ctx
// ends or a part of the control plane fails.
func runInstallation(ctx context.Context, o Options, log zapcore.WriteSyncer, progress *progressReporter) error {
	i := &installation{options: o, dir: dataDir{o.DataDir}, progress: progress, startedAt: time.Now()}
	release, err := i.prepare(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer i.wg.Wait()
	defer cancel()

	i.wg.Go(func() { i.dir.rotateLogs(ctx, maxLogBytes) })
	ready := i.startMembers(ctx)
	components, _ := o.selectComponents()
	controlPlane, err := controlplane.Start(ctx, controlplane.Options{
		Dir: i.dir.controlPlaneDir(), BindAddress: o.BindAddress, Ports: i.state.Ports, Fsync: true, Log: log, Step: progress.step,
		Components: components, Gates: o.Gates, ExtraConfig: o.ExtraConfig, CertificateLifetime: o.CertificateLifetime, AuditLog: o.AuditLog,
		StartOverAdvice: i.dir.startOverAdvice(), DefaultConfig: slices.Concat(i.dir.estimatorClientConfig(), controlplane.LocalMembersConfig()),
	})
	if err != nil {
		return err
	}
	defer controlPlane.Stop()
	if err := pki.WriteKubeconfig(i.dir.karmadaKubeconfig(), controlPlane.AdminContext()); err != nil {
		return err
	}
	i.wg.Go(func() { i.maintainEstimatorCertificates(ctx, controlPlane.InProcessConfig()) })
	if err := i.setUpMembers(ctx, controlPlane, ready); err != nil {
		return err
	}
	if err := i.publishEstimators(ctx, controlPlane.Config()); err != nil {
		return err
	}
	i.recordProcesses()
	progress.report(event{Text: i.nextSteps()})
	progress.report(event{Ready: true})
	return awaitFailure(ctx, controlPlane.Cluster)
}

// prepare locks the data directory and updates the stored state.
func (i *installation) prepare(ctx context.Context) (release func(), err error) {
	if err := i.dir.create(); err != nil {
		return nil, err
	}
	unlock, err := i.dir.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if i.state, err = i.dir.readState(); err != nil {
		return nil, err
	}
	if err = i.updateState(); err != nil {
		return nil, err
	}
	if limitErr := checkInotify(inotifyInstances * (1 + len(i.state.Members))); limitErr != nil {
		i.progress.report(event{Text: fmt.Sprintf("Warning: %v. Programs that run in members may fail with \"too many open files\".", limitErr)})
	}
	inside := append(components.ServerNames(), estimatorPortNames(i.state.Members)...)
	if err = choosePorts(i.state.Ports, append([]string{controlplane.APIServer}, i.state.Members...), inside); err != nil {
		return nil, err
	}
	if err = i.dir.writeState(i.state); err != nil {
		return nil, err
	}
	i.estimatorCertificates, err = i.dir.ensureEstimatorCertificates(i.state.Members, i.options.CertificateLifetime)
	return unlock, err
}

// updateState merges the options of this start into the state of the last start.
func (i *installation) updateState() (err error) {
	if i.state.Kubernetes, err = checkDataVersion(i.state.Kubernetes, kubernetesversion.DefaultKubeBinaryVersion); err != nil {
		return fmt.Errorf("data directory %s: %w", i.dir.path, err)
	}
	if i.options.Join != nil {
		i.state.SkipJoin = !*i.options.Join
	}
	if i.options.NodesPerMember > 0 {
		i.state.NodesPerMember = i.options.NodesPerMember
	}
	i.state.NodesPerMember = cmp.Or(i.state.NodesPerMember, standalone.DefaultNodeOptions().Count)
	_, i.state.Excluded = i.options.selectComponents()
	i.programsDisabled = i.options.programsDisabledReason(processnode.CheckConfinement())
	if err := i.updateMembers(); err != nil {
		return err
	}
	i.reportIdleMembers()
	return nil
}

// updateMembers decides which members exist, and in which mode each is registered.
func (i *installation) updateMembers() (err error) {
	if i.options.Members < 0 {
		return nil
	}
	before, pulledBefore := i.state.Members, i.state.PullMembers
	i.state.Members = memberNames(i.options.Members)
	if removed := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(i.state.Members, name) }); len(removed) > 0 {
		i.progress.report(event{Text: fmt.Sprintf("%s: not started, because --members is %d; their data is kept, and their Clusters stay until `karmadactl unjoin` or `unregister`",
			strings.Join(removed, ", "), i.options.Members)})
	}
	i.state.PullMembers, err = selectPullMembers(i.state.Members, i.options.PullMembers, i.programsDisabled, func(text string) { i.progress.report(event{Text: text}) })
	if i.programsDisabled != nil {
		// The mode of members that are registered in pull mode does not change.
		i.state.PullMembers = slices.DeleteFunc(pulledBefore, func(name string) bool { return !slices.Contains(i.state.Members, name) })
	}
	return err
}

// reportIdleMembers prints which agents do not run.
func (i *installation) reportIdleMembers() {
	if i.programsDisabled == nil || len(i.state.PullMembers) == 0 {
		return
	}
	i.idleMembers = i.state.PullMembers
	i.progress.report(event{Text: fmt.Sprintf("%s: no agent runs in these members: %v", strings.Join(i.idleMembers, ", "), i.programsDisabled)})
}

// checkDataVersion returns the Kubernetes version that writes the data from now on. It returns an
// error if a newer version wrote the data, because an API server may not be able to read the data
// of newer versions.
func checkDataVersion(written, ours string) (string, error) {
	if written == "" {
		return ours, nil
	}
	last, err := version.ParseGeneric(written)
	if err != nil {
		return "", fmt.Errorf("parsing the Kubernetes version that wrote it: %w", err)
	}
	if own := version.MustParseGeneric(ours); own.LessThan(last) {
		return "", fmt.Errorf("it was written by Kubernetes %s, and this program has %s: use the previous program or a newer one, or choose another --data-dir", written, ours)
	}
	return ours, nil
}

func countOf(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}

func memberNames(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("member%d", i+1)
	}
	return names
}

// startMembers starts the member clusters. Each channel receives one value: the error of the
// start, or nil.
func (i *installation) startMembers(ctx context.Context) []chan error {
	ready := make([]chan error, len(i.state.Members))
	for n, name := range i.state.Members {
		ready[n] = make(chan error, 1)
		i.supervisors = append(i.supervisors, i.newSupervisor(n, name))
	}
	for n, member := range i.supervisors {
		i.wg.Go(func() { member.run(ctx, func(err error) { ready[n] <- err }) })
	}
	return ready
}

func (i *installation) newSupervisor(index int, name string) *memberSupervisor {
	c := &memberSupervisor{options: memberOptions{
		Name: name, Dir: i.dir.memberDir(name), Port: i.state.Ports[name], CertificateLifetime: i.options.CertificateLifetime,
		AllowUnconfined: i.options.MemberPrograms != nil && *i.options.MemberPrograms,
		EstimatorPort:   i.state.Ports[estimatorPortName(name)], EstimatorsDir: i.dir.estimatorsDir(), FeatureGates: i.options.Gates.Given(),
	}}
	if i.programsDisabled != nil {
		c.options.ProgramsDisabled = i.programsDisabled.Error()
	}
	c.onStarted = i.recordProcesses
	c.openLog = func() (*os.File, error) { return i.dir.openLog(name) }
	c.newCommand = func() *exec.Cmd {
		return newMemberProcess(c.options, i.state.NodesPerMember, topologyForIndex(index))
	}
	return c
}

// setUpMembers waits for the member clusters, registers them, and waits until they are Ready.
func (i *installation) setUpMembers(ctx context.Context, control *controlplane.ControlPlane, ready []chan error) error {
	if len(ready) == 0 {
		return nil
	}
	if err := i.progress.step(countOf(len(ready), "member cluster"), func() error { return awaitAll(ctx, ready) }); err != nil {
		return err
	}
	accesses := make([]pki.KubeconfigContext, 0, len(i.supervisors))
	for _, member := range i.supervisors {
		access, err := member.adminContext()
		if err != nil {
			return err
		}
		accesses = append(accesses, access)
	}
	if err := pki.WriteKubeconfig(i.dir.membersKubeconfig(), accesses...); err != nil {
		return err
	}
	if i.state.SkipJoin {
		return nil
	}
	step := "members joined and Ready"
	if !i.runsControllerManager() {
		step = "members joined"
	}
	return i.progress.step(step, func() error { return i.joinMembers(ctx, control) })
}

func awaitAll(ctx context.Context, ready []chan error) error {
	var errs []error
	for _, result := range ready {
		select {
		case err := <-result:
			errs = append(errs, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// joinMembers registers the members that are not registered yet, concurrently.
func (i *installation) joinMembers(ctx context.Context, control *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	karmada := control.Config()
	registered, err := registeredClusters(ctx, karmada, i.state.Members)
	if err != nil {
		return err
	}
	errs := make([]error, len(i.supervisors))
	var joining sync.WaitGroup
	for n, member := range i.supervisors {
		switch name := member.options.Name; {
		case slices.Contains(registered, name):
		case i.isPullMember(name):
			joining.Go(func() { errs[n] = i.registerMember(ctx, control, name, topologyForIndex(n)) })
		default:
			joining.Go(func() { errs[n] = i.joinMember(ctx, karmada, name, topologyForIndex(n)) })
		}
	}
	joining.Wait()
	joined, err := i.joinedClusters(errs)
	if err != nil || !i.runsControllerManager() {
		return err
	}
	if err := awaitClustersReady(ctx, karmada, joined, i.startedAt); err != nil {
		return err
	}
	return i.clearRegistrations()
}

// runsControllerManager reports whether this process runs the controller manager, which monitors
// the members.
func (i *installation) runsControllerManager() bool {
	components, _ := i.options.selectComponents()
	return slices.Contains(components, programs.ControllerManager)
}

func (i *installation) joinMember(ctx context.Context, karmada *rest.Config, name string, location topology) error {
	member, err := i.memberConfig(name)
	if err != nil {
		return err
	}
	join := push.Join{
		Name: name, ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster,
		Provider: simulatedProvider, Region: location.Region, Zones: location.Zones,
		Karmada: karmada, Member: member, Log: func(string, ...any) {},
	}
	return retryUnavailable(ctx, func() error { return join.Run(ctx) })
}

// memberConfig returns the administrator's client configuration of a member.
func (i *installation) memberConfig(name string) (*rest.Config, error) {
	member, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: i.dir.membersKubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of member %q: %w", name, err)
	}
	return member, nil
}

// recordProcesses writes the process IDs to a file, for measuring and debugging. No code
// depends on the file.
func (i *installation) recordProcesses() {
	i.processesMu.Lock()
	defer i.processesMu.Unlock()
	_ = i.dir.writeProcesses(i.processes())
}

func (i *installation) processes() []processRecord {
	processes := []processRecord{{Name: "karmada", PID: os.Getpid()}}
	for _, member := range i.supervisors {
		processes = append(processes, processRecord{Name: member.options.Name, PID: member.pid()})
	}
	return processes
}

// nextSteps returns a text with commands that the user can run next.
func (i *installation) nextSteps() string {
	text := fmt.Sprintf(`
Karmada is up. The API server is the context karmada-apiserver in
  %s
Try:
  export KUBECONFIG=%[1]s
  kubectl get clusters
`, i.dir.karmadaKubeconfig())
	if len(i.state.Members) > 0 {
		text += fmt.Sprintf("The members are the contexts in\n  %s\n", i.dir.membersKubeconfig())
	}
	if len(i.state.Excluded) > 0 {
		text += fmt.Sprintf("Components to run yourself with --kubeconfig %s:\n  %s\n", i.dir.karmadaKubeconfig(), strings.Join(i.state.Excluded, " "))
	}
	return text + fmt.Sprintf("Logs are in %s. Stop with\n  %s", i.dir.logsDir(), i.dir.stopCommand())
}

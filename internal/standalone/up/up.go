// Package up answers "how does somebody try Karmada on one machine, with one
// command and nothing installed?": `karmada up`, `down`, `status` and the member
// clusters it simulates.
//
// One process holds the control plane; each member cluster is a child process of
// the same program that ends when its parent does, however that ends. Everything
// lives in one data directory, which one process at a time may use.
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
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/registration/push"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/standalone/processnode"
)

// Options are what `karmada up` takes.
type Options struct {
	// DataDir holds everything; it is created if needed.
	DataDir string
	// BindAddress is where the control plane's API server listens.
	BindAddress string
	// Members is how many member clusters are simulated; negative means as many
	// as last time.
	Members int
	// PullMembers is how many of them an agent serves; negative means every third.
	PullMembers int
	// NodesPerMember is how many nodes each has; 0 means as many as last time.
	NodesPerMember int
	// CertificateLifetime is how long certificates are valid; they renew themselves.
	CertificateLifetime time.Duration
	// Join registers the members, or leaves that to the user; nil means as last time,
	// and at first that they are registered.
	Join *bool
	// Components are those of Karmada to run in this process, as programs.IsSelected
	// reads a list.
	Components []string
	// Gates are the feature gates of all components; nil means the defaults.
	Gates *gates.Set
	// Extra are flags of components, as controlplane.Configure reads them.
	Extra []string
	// AuditLog is the file in which the API server of the control plane records
	// requests; empty means none.
	AuditLog string
	// MemberPrograms runs Pods of our images in members as processes of this machine, or
	// does not; nil means that it does while that is safe.
	MemberPrograms *bool
}

// components are the names of the components to run, and of those that are left
// to the user.
func (o Options) components() (run, left []string) {
	for _, name := range programs.ComponentNames() {
		if programs.IsSelected(o.Components, name, true) {
			run = append(run, name)
			continue
		}
		left = append(left, name)
	}
	return run, left
}

// readyTimeout is how long members may take to become Ready.
const readyTimeout = 4 * time.Minute

// installation is one run of `karmada up`.
type installation struct {
	options  Options
	dir      dataDir
	state    state
	tell     *progress
	children []*child
	// programsOff says why members run no programs, nil if they do. idle are the members
	// whose agents do not run for it.
	programsOff error
	idle        []string
	// began is when this run did.
	began time.Time
	wg    sync.WaitGroup

	recording sync.Mutex
	// remembering guards what of the state changes while members register.
	remembering sync.Mutex
}

// run starts everything, tells when it is ready, and keeps it running until ctx
// ends or a part of the control plane fails.
func run(ctx context.Context, o Options, log zapcore.WriteSyncer, tell *progress) error {
	i := &installation{options: o, dir: dataDir{o.DataDir}, tell: tell, began: time.Now()}
	release, err := i.prepare()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	defer i.wg.Wait()
	defer cancel()

	i.wg.Go(func() { i.dir.boundLogs(ctx, maxLog) })
	ready := i.startMembers(ctx)
	components, _ := o.components()
	control, err := controlplane.Start(ctx, controlplane.Options{
		Dir: i.dir.controlPlane(), BindAddress: o.BindAddress, Ports: i.state.Ports, Fsync: true, Log: log, Step: tell.step,
		Components: components, Gates: o.Gates, Extra: o.Extra, CertificateLifetime: o.CertificateLifetime, AuditLog: o.AuditLog,
		StartOver: i.dir.startOver(),
	})
	if err != nil {
		return err
	}
	defer control.Stop()
	if err := pki.WriteKubeconfig(i.dir.karmadaConfig(), control.Access()); err != nil {
		return err
	}
	if err := i.bringMembers(ctx, control, ready); err != nil {
		return err
	}
	i.recordProcesses()
	tell.tell(event{Text: i.advice()})
	tell.tell(event{Ready: true})
	return watchOver(ctx, control.Cluster)
}

// prepare takes the data directory and settles what must be remembered.
func (i *installation) prepare() (release func(), err error) {
	if err := i.dir.create(); err != nil {
		return nil, err
	}
	if release, err = i.dir.lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	if i.state, err = i.dir.readState(); err != nil {
		return nil, err
	}
	if err = i.remember(); err != nil {
		return nil, err
	}
	inside := []string{controlplane.AggregatedAPIServer, controlplane.Webhook}
	if err = choosePorts(i.state.Ports, append([]string{controlplane.APIServer}, i.state.Members...), inside); err != nil {
		return nil, err
	}
	return release, i.dir.writeState(i.state)
}

// remember settles what this start says and what the last one said.
func (i *installation) remember() (err error) {
	if i.state.Kubernetes, err = reads(i.state.Kubernetes, kubernetesversion.DefaultKubeBinaryVersion); err != nil {
		return fmt.Errorf("data directory %s: %w", i.dir.path, err)
	}
	if i.options.Join != nil {
		i.state.Unjoined = !*i.options.Join
	}
	if i.options.NodesPerMember > 0 {
		i.state.NodesPerMember = i.options.NodesPerMember
	}
	i.state.NodesPerMember = cmp.Or(i.state.NodesPerMember, standalone.DefaultNodeOptions().Count)
	i.programsOff = i.options.programsOff(processnode.CheckConfinement())
	if err := i.rememberMembers(); err != nil {
		return err
	}
	i.tellIdle()
	return nil
}

// rememberMembers settles which members there are, and how each is registered.
func (i *installation) rememberMembers() (err error) {
	if i.options.Members < 0 {
		return nil
	}
	before, pulled := i.state.Members, i.state.Pull
	i.state.Members = memberNames(i.options.Members)
	if left := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(i.state.Members, name) }); len(left) > 0 {
		i.tell.tell(event{Text: fmt.Sprintf("%s: not started, for --members says %d; what they hold stays, and so do their Clusters until `karmadactl unjoin` or `unregister`",
			strings.Join(left, ", "), i.options.Members)})
	}
	i.state.Pull, err = pullMembers(i.state.Members, i.options.PullMembers, i.programsOff, func(text string) { i.tell.tell(event{Text: text}) })
	if i.programsOff != nil {
		// Those that are registered stay so.
		i.state.Pull = slices.DeleteFunc(pulled, func(name string) bool { return !slices.Contains(i.state.Members, name) })
	}
	return err
}

// tellIdle says whose agents do not run.
func (i *installation) tellIdle() {
	if i.programsOff == nil || len(i.state.Pull) == 0 {
		return
	}
	i.idle = i.state.Pull
	i.tell.tell(event{Text: fmt.Sprintf("%s: no agent runs there: %v", strings.Join(i.idle, ", "), i.programsOff)})
}

// reads is the version that data is written by from now on. API servers read what
// older ones wrote, and may not know what newer ones did.
func reads(written, ours string) (string, error) {
	if written == "" {
		return ours, nil
	}
	last, err := version.ParseGeneric(written)
	if err != nil {
		return "", fmt.Errorf("reading by which version of Kubernetes it was written: %w", err)
	}
	if own := version.MustParseGeneric(ours); own.LessThan(last) {
		return "", fmt.Errorf("it was written by Kubernetes %s, and this program has %s: start it with the program of before or a newer one, or name another with --data-dir", written, ours)
	}
	return ours, nil
}

func counted(count int, what string) string {
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

// startMembers starts the member clusters; each sends its error, or nil, once.
func (i *installation) startMembers(ctx context.Context) []chan error {
	ready := make([]chan error, len(i.state.Members))
	for n, name := range i.state.Members {
		ready[n] = make(chan error, 1)
		i.children = append(i.children, i.child(n, name))
	}
	for n, member := range i.children {
		i.wg.Go(func() { member.run(ctx, func(err error) { ready[n] <- err }) })
	}
	return ready
}

func (i *installation) child(index int, name string) *child {
	c := &child{options: memberOptions{
		Name: name, Dir: i.dir.member(name), Port: i.state.Ports[name], CertificateLifetime: i.options.CertificateLifetime,
		ProgramsUnconfined: i.options.MemberPrograms != nil && *i.options.MemberPrograms,
	}}
	if i.programsOff != nil {
		c.options.ProgramsOff = i.programsOff.Error()
	}
	c.started = i.recordProcesses
	c.openLog = func() (*os.File, error) { return i.dir.openLog(name) }
	c.command = func() *exec.Cmd {
		return memberCommand(c.options, i.state.NodesPerMember, topologyOf(index))
	}
	return c
}

// bringMembers waits for the member clusters, registers them, and waits until
// the control plane finds them ready.
func (i *installation) bringMembers(ctx context.Context, control *controlplane.ControlPlane, ready []chan error) error {
	if len(ready) == 0 {
		return nil
	}
	if err := i.tell.step(counted(len(ready), "member cluster"), func() error { return awaitAll(ctx, ready) }); err != nil {
		return err
	}
	accesses := make([]pki.KubeconfigContext, 0, len(i.children))
	for _, member := range i.children {
		access, err := member.access()
		if err != nil {
			return err
		}
		accesses = append(accesses, access)
	}
	if err := pki.WriteKubeconfig(i.dir.membersConfig(), accesses...); err != nil {
		return err
	}
	if i.state.Unjoined {
		return nil
	}
	step := "members joined and Ready"
	if !i.watchesMembers() {
		step = "members joined"
	}
	return i.tell.step(step, func() error { return i.join(ctx, control) })
}

func awaitAll(ctx context.Context, ready []chan error) error {
	var errs []error
	for _, one := range ready {
		select {
		case err := <-one:
			errs = append(errs, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// join registers the members that are not registered yet, side by side.
func (i *installation) join(ctx context.Context, control *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	karmada := control.Config()
	registered, err := registeredClusters(ctx, karmada, i.state.Members)
	if err != nil {
		return err
	}
	errs := make([]error, len(i.children))
	var joins sync.WaitGroup
	for n, member := range i.children {
		switch name := member.options.Name; {
		case slices.Contains(registered, name):
		case i.pulls(name):
			joins.Go(func() { errs[n] = i.registerOne(ctx, control, name, topologyOf(n)) })
		default:
			joins.Go(func() { errs[n] = i.joinOne(ctx, karmada, name, topologyOf(n)) })
		}
	}
	joins.Wait()
	joined, err := i.joined(errs)
	if err != nil || !i.watchesMembers() {
		return err
	}
	if err := awaitClustersReady(ctx, karmada, joined, i.began); err != nil {
		return err
	}
	return i.endRegistering()
}

// watchesMembers reports whether this process finds out how the members are.
func (i *installation) watchesMembers() bool {
	components, _ := i.options.components()
	return slices.Contains(components, programs.ControllerManager)
}

func (i *installation) joinOne(ctx context.Context, karmada *rest.Config, name string, where topology) error {
	member, err := i.memberConfig(name)
	if err != nil {
		return err
	}
	join := push.Join{
		Name: name, ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster,
		Provider: simulatedProvider, Region: where.Region, Zones: where.Zones,
		Karmada: karmada, Member: member, Log: func(string, ...any) {},
	}
	return persist(ctx, func() error { return join.Run(ctx) })
}

// memberConfig is the administrator's way into a member.
func (i *installation) memberConfig(name string) (*rest.Config, error) {
	member, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: i.dir.membersConfig()},
		&clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig of member %q: %w", name, err)
	}
	return member, nil
}

// recordProcesses writes down which processes there are, for whoever measures or
// debugs them. Nothing depends on it.
func (i *installation) recordProcesses() {
	i.recording.Lock()
	defer i.recording.Unlock()
	_ = i.dir.writeProcesses(i.processes())
}

func (i *installation) processes() []process {
	processes := []process{{Name: "karmada", PID: os.Getpid()}}
	for _, member := range i.children {
		processes = append(processes, process{Name: member.options.Name, PID: member.pid()})
	}
	return processes
}

// advice is what to type next.
func (i *installation) advice() string {
	text := fmt.Sprintf(`
Karmada is up. Its API server is the context karmada-apiserver of
  %s
Try:
  export KUBECONFIG=%[1]s
  kubectl get clusters
`, i.dir.karmadaConfig())
	if len(i.state.Members) > 0 {
		text += fmt.Sprintf("The members are the contexts of\n  %s\n", i.dir.membersConfig())
	}
	if _, left := i.options.components(); len(left) > 0 {
		text += fmt.Sprintf("Left out, for you to run with --kubeconfig %s:\n  %s\n", i.dir.karmadaConfig(), strings.Join(left, " "))
	}
	return text + fmt.Sprintf("Logs are in %s. Stop with\n  %s", i.dir.logs(), i.dir.howToStop())
}

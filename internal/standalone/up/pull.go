package up

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/standalone/processnode"
)

const (
	// pullMemberInterval makes every third member register in pull mode by default.
	pullMemberInterval = 3
	// tokenLifetime limits a bootstrap token's validity, because deleting the token can fail.
	tokenLifetime        = 10 * time.Minute
	tokenDeletionTimeout = 5 * time.Second
)

// selectPullMembers returns the members to register in pull mode. If this machine cannot run the
// agent's program, no member is selected. In this case, selectPullMembers returns an error if the user
// requested a number of pull mode members, and otherwise calls report.
func selectPullMembers(members []string, count int, programsDisabled error, report func(text string)) ([]string, error) {
	chosen := choosePullMembers(members, count)
	if len(chosen) == 0 {
		return nil, nil
	}
	err := programsDisabled
	if err == nil {
		_, err = processnode.FindProgram(programs.Agent)
	}
	switch {
	case err == nil:
		return chosen, nil
	case count > 0:
		return nil, fmt.Errorf("pull mode of %s requires the program %s: %w", strings.Join(chosen, ", "), programs.Agent, err)
	default:
		report(fmt.Sprintf("%s: joined in push mode, because the program of the agent cannot run here: %v", strings.Join(chosen, ", "), err))
		return nil, nil
	}
}

// choosePullMembers selects every third member. If count is given, it first selects up to count of
// these members, and then other members from the last to the first.
func choosePullMembers(members []string, count int) []string {
	var every, others []string
	for n, name := range members {
		if (n+1)%pullMemberInterval == 0 {
			every = append(every, name)
			continue
		}
		others = append([]string{name}, others...)
	}
	if count < 0 {
		return every
	}
	return append(every, others...)[:count]
}

// isPullMember reports whether the member is registered in pull mode. Pull mode requires the controller
// manager, which approves the agents' certificates.
func (i *installation) isPullMember(name string) bool {
	return i.runsControllerManager() && i.programsDisabled == nil && slices.Contains(i.state.PullMembers, name)
}

// registerMember does the same as `karmadactl token create` and `karmadactl register`. It continues a
// registration that was interrupted by the end of an earlier start or by a restart of the member.
func (i *installation) registerMember(ctx context.Context, name string, location topology) error {
	member, err := i.memberConfig(name)
	if err != nil {
		return err
	}
	return retryUnavailable(ctx, func() error {
		token := i.registrationToken(name)
		if token != "" {
			return i.resumeRegistration(ctx, name, location, member, token)
		}
		if token, err = i.recordRegistration(name); err != nil {
			return err
		}
		return i.registerWithToken(ctx, name, location, member, token)
	})
}

func (i *installation) resumeRegistration(ctx context.Context, name string, location topology, member *rest.Config, token string) error {
	for lastTry := false; ; lastTry = true {
		installed, err := resumeInterrupted(ctx, interruptedRegistration{cluster: name, token: token, ca: i.control.CA().Cert},
			i.control.Config(), member)
		if err != nil || installed {
			return err
		}
		// A pending CSR may be approved while it is being deleted. The agent then creates objects that
		// the second attempt must delete.
		if err = i.registerWithToken(ctx, name, location, member, token); err == nil || lastTry || ctx.Err() != nil {
			return err
		}
	}
}

// registerWithToken registers a member with a bootstrap token, and then deletes the token.
func (i *installation) registerWithToken(ctx context.Context, name string, location topology, member *rest.Config, id string) (err error) {
	karmada := i.control.Config()
	token, err := newToken()
	if err != nil {
		return err
	}
	token.ID, token.Expires, token.Description = id, time.Now().Add(tokenLifetime), "karmada up registers "+name
	if _, err := registration.CreateToken(ctx, karmada, token); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenDeletionTimeout)
		defer cancel()
		if deleteErr := registration.DeleteToken(ctx, karmada, token.ID); deleteErr != nil && err == nil {
			err = deleteErr
		}
	}()
	return pull.Register{
		Endpoint: strings.TrimPrefix(i.control.Server(), "https://"), Name: name,
		Token: token.String(), CAHashes: []string{registration.NewPin(i.control.CA().Cert).String()},
		Provider: simulatedProvider, Region: location.Region, Zones: location.Zones,
		CertRotation: true, Timeout: readyTimeout, Member: member,
		Log: func(format string, args ...any) {
			klog.FromContext(ctx).Info(fmt.Sprintf(format, args...), "member", name)
		},
	}.Run(ctx)
}

func newToken() (registration.Token, error) {
	text, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return registration.Token{}, fmt.Errorf("generating a bootstrap token: %w", err)
	}
	return registration.ParseToken(text)
}

// registrationToken returns the ID of the bootstrap token for the member's unfinished registration, or
// an empty string if there is none.
func (i *installation) registrationToken(name string) string {
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	return i.state.RegistrationTokens[name]
}

// recordRegistration generates a token ID and stores the ID before any object is created. This
// guarantees that every object with this ID belongs to this installation.
func (i *installation) recordRegistration(name string) (id string, err error) {
	token, err := newToken()
	if err != nil {
		return "", err
	}
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	if i.state.RegistrationTokens == nil {
		i.state.RegistrationTokens = map[string]string{}
	}
	i.state.RegistrationTokens[name] = token.ID
	return token.ID, i.dir.writeState(i.state)
}

// clearRegistrations deletes the stored token IDs. It is called when all Clusters exist.
func (i *installation) clearRegistrations() error {
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	if len(i.state.RegistrationTokens) == 0 {
		return nil
	}
	i.state.RegistrationTokens = nil
	return i.dir.writeState(i.state)
}

// storeState writes the state to the data directory.
func (i *installation) storeState() error {
	i.stateMu.Lock()
	defer i.stateMu.Unlock()
	return i.dir.writeState(i.state)
}

// joinedClusters returns the Clusters to wait for. errs are the results of the members' registrations.
// If a member is registered under another name, joinedClusters reports this and returns that name. If
// another installation's agent runs in a member, joinedClusters reports this and leaves the member
// unchanged.
func (i *installation) joinedClusters(members []string, errs []error, progress *progressReporter) (joined []string, err error) {
	var joinErrs []error
	for n, name := range members {
		if preflight := (*pull.PreflightError)(nil); errors.As(errs[n], &preflight) {
			progress.report(event{Text: fmt.Sprintf("%s is not registered: %v", name, preflight)})
			continue
		}
		if registered := (*registration.RegisteredError)(nil); errors.As(errs[n], &registered) && registered.Existing.Name != name &&
			registered.Existing.Spec.ID == registered.ID {
			progress.report(event{Text: fmt.Sprintf("%s stays registered as Cluster %s", name, registered.Existing.Name)})
			joined = append(joined, registered.Existing.Name)
			continue
		}
		if !slices.Contains(i.idleMembers, name) {
			joined = append(joined, name)
		}
		joinErrs = append(joinErrs, errs[n])
	}
	return joined, errors.Join(joinErrs...)
}

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
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/standalone/processnode"
)

const (
	// pullEvery is which members an agent serves unless somebody says how many.
	pullEvery = 3
	// tokenLifetime bounds what a token that nobody deleted is good for.
	tokenLifetime = 10 * time.Minute
	tokenDeletion = 5 * time.Second
)

// pullMembers are the members that an agent serves. Without the agent's program
// there are none, which is wrong only if somebody asked for them; else they are told.
func pullMembers(members []string, count int, off error, tell func(text string)) ([]string, error) {
	chosen := choosePull(members, count)
	if len(chosen) == 0 {
		return nil, nil
	}
	err := off
	if err == nil {
		_, err = processnode.Find(programs.Agent)
	}
	switch {
	case err == nil:
		return chosen, nil
	case count > 0:
		return nil, fmt.Errorf("%s register themselves, which needs the program %s: %w", strings.Join(chosen, ", "), programs.Agent, err)
	default:
		tell(fmt.Sprintf("%s: joined without an agent, whose program does not run here: %v", strings.Join(chosen, ", "), err))
		return nil, nil
	}
}

// choosePull takes every third member; a count that is given takes those first and
// then others from the last to the first.
func choosePull(members []string, count int) []string {
	var every, others []string
	for n, name := range members {
		if (n+1)%pullEvery == 0 {
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

// pulls reports whether an agent serves a member: not where nobody would approve
// its certificate.
func (i *installation) pulls(name string) bool {
	return i.watchesMembers() && i.programsOff == nil && slices.Contains(i.state.Pull, name)
}

// registerOne does what `karmadactl token create` and `karmadactl register` do. Where
// that was interrupted, by an earlier start or the end of a process, it goes on.
func (i *installation) registerOne(ctx context.Context, control *controlplane.ControlPlane, name string, where topology) error {
	member, err := i.memberConfig(name)
	if err != nil {
		return err
	}
	return persist(ctx, func() error {
		token := i.registering(name)
		if token != "" {
			return i.registerAgain(ctx, control, name, where, member, token)
		}
		if token, err = i.beginRegistering(name); err != nil {
			return err
		}
		return i.registerWith(ctx, control, name, where, member, token)
	})
}

func (i *installation) registerAgain(ctx context.Context, control *controlplane.ControlPlane, name string, where topology, member *rest.Config, token string) error {
	for last := false; ; last = true {
		there, err := takeUp(ctx, remains{cluster: name, token: token, ca: control.CA().Cert}, control.Config(), member)
		if err != nil || there {
			return err
		}
		// A request of before may have been answered while it was being taken back.
		if err = i.registerWith(ctx, control, name, where, member, token); err == nil || last || ctx.Err() != nil {
			return err
		}
	}
}

// registerWith registers a member with a token that lives no longer than that takes.
func (i *installation) registerWith(ctx context.Context, control *controlplane.ControlPlane, name string, where topology, member *rest.Config, id string) (err error) {
	karmada := control.Config()
	token, err := newToken()
	if err != nil {
		return err
	}
	token.ID, token.Expires, token.Description = id, time.Now().Add(tokenLifetime), "karmada up registers "+name
	if _, err := bootstraptoken.Create(ctx, karmada, token); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenDeletion)
		defer cancel()
		if forgotten := bootstraptoken.Delete(ctx, karmada, token.ID); forgotten != nil && err == nil {
			err = forgotten
		}
	}()
	return pull.Register{
		Endpoint: strings.TrimPrefix(control.Server(), "https://"), Name: name,
		Token: token.String(), CAHashes: []string{bootstraptoken.NewPin(control.CA().Cert).String()},
		Provider: simulatedProvider, Region: where.Region, Zones: where.Zones,
		CertRotation: true, Timeout: readyTimeout, Member: member,
		Log: func(format string, args ...any) {
			klog.FromContext(ctx).Info(fmt.Sprintf(format, args...), "member", name)
		},
	}.Run(ctx)
}

func newToken() (bootstraptoken.Token, error) {
	text, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return bootstraptoken.Token{}, fmt.Errorf("choosing a token: %w", err)
	}
	return bootstraptoken.Parse(text)
}

// registering is the ID of the token with which a member is being registered, empty
// if it is not.
func (i *installation) registering(name string) string {
	i.remembering.Lock()
	defer i.remembering.Unlock()
	return i.state.Registering[name]
}

// beginRegistering chooses the ID of a token and writes it down before anything is
// made with it: whatever bears it is ours.
func (i *installation) beginRegistering(name string) (id string, err error) {
	token, err := newToken()
	if err != nil {
		return "", err
	}
	i.remembering.Lock()
	defer i.remembering.Unlock()
	if i.state.Registering == nil {
		i.state.Registering = map[string]string{}
	}
	i.state.Registering[name] = token.ID
	return token.ID, i.dir.writeState(i.state)
}

// endRegistering forgets the tokens of all members: there are their Clusters.
func (i *installation) endRegistering() error {
	i.remembering.Lock()
	defer i.remembering.Unlock()
	if len(i.state.Registering) == 0 {
		return nil
	}
	i.state.Registering = nil
	return i.dir.writeState(i.state)
}

// joined are the Clusters to wait for. A member that somebody has registered under
// another name stays under it, and one with an agent that this installation has not
// brought stays as it is; both are told.
func (i *installation) joined(errs []error) (members []string, err error) {
	var failed []error
	for n, name := range i.state.Members {
		if found := (*pull.PreflightError)(nil); errors.As(errs[n], &found) {
			i.tell.tell(event{Text: fmt.Sprintf("%s stays without a Cluster: %v", name, found)})
			continue
		}
		if has := (*registration.RegisteredError)(nil); errors.As(errs[n], &has) && has.Existing.Name != name && has.Existing.Spec.ID == has.ID {
			i.tell.tell(event{Text: fmt.Sprintf("%s stays Cluster %s", name, has.Existing.Name)})
			members = append(members, has.Existing.Name)
			continue
		}
		if !slices.Contains(i.idle, name) {
			members = append(members, name)
		}
		failed = append(failed, errs[n])
	}
	return members, errors.Join(failed...)
}

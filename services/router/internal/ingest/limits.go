package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

// Limits are what an Admin needs to list and to change limits.
type Limits struct {
	Store  *limits.Store
	Tokens *access.Store
	// Settings are those of this router.
	Settings map[limits.Name]string
}

// ListLimits implements adminv1.AdminServiceServer.
func (s *Admin) ListLimits(ctx context.Context, _ *adminv1.ListLimitsRequest) (*adminv1.ListLimitsResponse, error) {
	if err := administersAll(ctx, "limits"); err != nil {
		return nil, err
	}
	set, err := s.limits.Store.List(ctx)
	if err != nil {
		return nil, storeError(ctx, "list limits", err)
	}
	for _, l := range limits.All() {
		if _, ok := set[string(l.Name)]; !ok {
			set[string(l.Name)] = limits.Record{}
		}
	}
	resp := &adminv1.ListLimitsResponse{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		resp.Limits = append(resp.Limits, s.limit(name, set[name]))
	}
	return resp, nil
}

// limit describes a limit; the record is the zero one if it is not set.
func (s *Admin) limit(name string, record limits.Record) *adminv1.Limit {
	out := &adminv1.Limit{Name: name, Value: record.Value, SetBy: record.By}
	if !record.At.IsZero() {
		out.SetAt = timestamppb.New(record.At)
	}
	key, l, err := limits.ParseKey(name)
	if err != nil {
		out.Description = "not known to this version, which ignores it"
		return out
	}
	out.Description, out.Setting = l.Describe(), s.limits.Settings[key.Name]
	return out
}

// SetLimit implements adminv1.AdminServiceServer.
func (s *Admin) SetLimit(ctx context.Context, req *adminv1.SetLimitRequest) (*adminv1.SetLimitResponse, error) {
	if err := administersAll(ctx, "limits"); err != nil {
		return nil, err
	}
	key, _, err := limits.ParseKey(req.Name)
	if err != nil {
		return nil, searchapi.FieldError(codes.NotFound, "name", err.Error())
	}
	if key.Token != "" {
		if key.Token, err = s.tokenID(ctx, key, req.Value == ""); err != nil {
			return nil, err
		}
	}
	caller := "anyone" // without access control
	if p, err := access.From(ctx); err == nil {
		caller = p.Name()
	}
	var before string
	if req.Value == "" {
		before, err = s.limits.Store.Unset(ctx, key)
	} else {
		before, err = s.limits.Store.Set(ctx, key, req.Value, caller)
	}
	switch {
	case errors.Is(err, limits.ErrValue):
		return nil, searchapi.FieldError(codes.InvalidArgument, "value", err.Error())
	case err != nil:
		return nil, storeError(ctx, "set limit", err)
	}
	s.log.InfoContext(ctx, "limit changed", "limit", key.String(), "before", before, "value", req.Value, "caller", caller)
	return &adminv1.SetLimitResponse{Before: before}, nil
}

// tokenID returns the ID of the token that a limit is for, which may be named by its ID or by its name. What is unset
// may be of a token that was revoked.
func (s *Admin) tokenID(ctx context.Context, key limits.Key, unset bool) (string, error) {
	if unset {
		set, err := s.limits.Store.List(ctx)
		if err != nil {
			return "", storeError(ctx, "list limits", err)
		}
		if _, ok := set[key.String()]; ok {
			return key.Token, nil
		}
	}
	tokens, err := s.limits.Tokens.List(ctx)
	if err != nil {
		return "", storeError(ctx, "list tokens", err)
	}
	var named, names []string
	for _, t := range tokens {
		if t.GetId() == key.Token {
			return t.GetId(), nil
		}
		if t.GetName() == key.Token {
			named = append(named, t.GetId())
		}
		names = append(names, t.GetName())
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		text := fmt.Sprintf("there is no token %q", key.Token)
		if near := searchapi.Nearest(key.Token, names); len(near) > 0 {
			text += "; the nearest: " + strings.Join(near, ", ")
		}
		return "", searchapi.FieldError(codes.NotFound, "name", text)
	}
	return "", searchapi.FieldError(codes.FailedPrecondition, "name",
		fmt.Sprintf("%d tokens have the name %q: use the ID of one, which are %s", len(named), key.Token, strings.Join(named, ", ")))
}

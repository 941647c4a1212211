package main

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type (
	attributes = map[string]schema.Attribute
	blocks     = map[string]schema.Block
)

var (
	required = schema.StringAttribute{Required: true}
	optional = schema.StringAttribute{Optional: true}
	computed = schema.StringAttribute{Computed: true}
	either   = schema.StringAttribute{Optional: true, Computed: true}
	number   = schema.Int64Attribute{Optional: true}
	boolean  = schema.BoolAttribute{Optional: true}
	tags     = schema.MapAttribute{Optional: true, ElementType: types.StringType}
)

func list(a attributes, b blocks) schema.Block {
	return schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: a, Blocks: b}}
}

func set(a attributes, b blocks) schema.Block {
	return schema.SetNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: a, Blocks: b}}
}

// ofBucket returns the schema of a resource that is a part of a bucket.
func ofBucket(a attributes, b blocks) schema.Schema {
	all := attributes{"id": computed, "bucket": required, "expected_bucket_owner": optional}
	for name, attribute := range a {
		all[name] = attribute
	}
	return schema.Schema{Attributes: all, Blocks: b}
}

var resources = map[string]schema.Schema{
	"aws_s3_bucket": {Attributes: attributes{
		"id": computed, "arn": computed, "region": computed, "bucket": either, "force_destroy": boolean, "tags": tags,
	}},
	"aws_s3_bucket_public_access_block": ofBucket(attributes{
		"block_public_acls": boolean, "block_public_policy": boolean, "ignore_public_acls": boolean, "restrict_public_buckets": boolean,
	}, nil),
	"aws_s3_bucket_ownership_controls": ofBucket(nil, blocks{"rule": list(attributes{"object_ownership": required}, nil)}),
	"aws_s3_bucket_versioning": ofBucket(attributes{"mfa": optional}, blocks{
		"versioning_configuration": list(attributes{"status": required, "mfa_delete": either}, nil),
	}),
	"aws_s3_bucket_server_side_encryption_configuration": ofBucket(nil, blocks{
		"rule": set(attributes{"bucket_key_enabled": boolean}, blocks{
			"apply_server_side_encryption_by_default": list(attributes{"sse_algorithm": required, "kms_master_key_id": optional}, nil),
		}),
	}),
	"aws_s3_bucket_lifecycle_configuration": ofBucket(nil, blocks{
		"rule": list(attributes{"id": required, "status": required, "prefix": optional}, blocks{
			"filter":                            list(attributes{"prefix": optional}, nil),
			"expiration":                        list(attributes{"date": optional, "days": number, "expired_object_delete_marker": boolean}, nil),
			"transition":                        set(attributes{"date": optional, "days": number, "storage_class": required}, nil),
			"noncurrent_version_expiration":     list(attributes{"noncurrent_days": number, "newer_noncurrent_versions": number}, nil),
			"abort_incomplete_multipart_upload": list(attributes{"days_after_initiation": number}, nil),
		}),
	}),
	"aws_s3_bucket_policy": ofBucket(attributes{"policy": required}, nil),
	"aws_iam_role": {Attributes: attributes{
		"id": computed, "arn": computed, "name": either, "assume_role_policy": required, "tags": tags,
	}},
	"aws_iam_role_policy": {Attributes: attributes{"id": computed, "name": either, "role": required, "policy": required}},
}

var (
	dataRequired = dataschema.StringAttribute{Required: true}
	dataComputed = dataschema.StringAttribute{Computed: true}
)

func object(name string, of attr.Type) attr.Type {
	return types.ObjectType{AttrTypes: map[string]attr.Type{name: of}}
}

type read = map[string]dataschema.Attribute

var dataSources = map[string]dataschema.Schema{
	"aws_eks_cluster": {Attributes: read{
		"id": dataComputed, "name": dataRequired, "arn": dataComputed, "endpoint": dataComputed,
		"certificate_authority": dataschema.ListAttribute{Computed: true, ElementType: object("data", types.StringType)},
		"identity": dataschema.ListAttribute{Computed: true, ElementType: object("oidc",
			types.ListType{ElemType: object("issuer", types.StringType)})},
	}},
	"aws_iam_openid_connect_provider": {Attributes: read{"id": dataComputed, "url": dataschema.StringAttribute{Optional: true, Computed: true}, "arn": dataComputed}},
}

CREATE TABLE inferences (
    id bigserial PRIMARY KEY,
    label integer NOT NULL,
    probability double precision NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
